"""Memories: steps against the sequence pass, forgetting, what gradients reach, each cell against its definition."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import ConfigError
from ajax.core.records import Inputs
from ajax.networks import heads
from ajax.networks.encoder import Encoder
from ajax.networks.memory import GRU, LSTM, Mamba, Memory, Transformer, forget
from ajax.networks.torsos import Torso
from tests.agents.build import KEY

MEMORIES: dict[str, Memory] = {
    "GRU": GRU(size=4),
    "LSTM": LSTM(size=4),
    "Transformer": Transformer(size=4, heads=2, window=3, layers=2),
    "Mamba": Mamba(size=4, state=3),
}
STEPS, SEQUENCES, FEATURES = 7, 2, 3
RNG = np.random.default_rng(0)
OBS = RNG.normal(size=(STEPS, SEQUENCES, FEATURES)).astype(np.float32)
RESET = np.zeros((STEPS, SEQUENCES), np.float32)
RESET[3, 0] = RESET[5, 1] = RESET[6, 1] = 1.0  # episodes begin in the middle, at different times, one of a single step


def made(name: str) -> tuple[Encoder, Any]:
    encoder = Encoder(Torso(memory=MEMORIES[name]), name="q_encoder")
    return encoder, encoder.init(KEY, Inputs(OBS[0]))


def step_by_step(encoder: Encoder, variables: Any, carry: Any) -> tuple[list, list]:
    """Features and carries of every step, as an agent that acts would meet them."""
    features, carries = [], [carry]
    for obs, reset in zip(OBS, RESET, strict=True):
        x = Inputs(obs, None, reset, {"q_encoder": carries[-1]})
        out, carry = encoder.apply(variables, x, method="remember")
        features.append(out)
        carries.append(carry)
    return features, carries


def close(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), a, b)


@pytest.mark.parametrize("burn_in", [0, 2])
@pytest.mark.parametrize("name", MEMORIES)
def test_acting_step_by_step_is_the_sequence_pass(name, burn_in):
    encoder, variables = made(name)
    start = jax.tree.map(lambda x: jnp.full_like(x, 0.3), MEMORIES[name].empty(SEQUENCES))
    features, _ = step_by_step(encoder, variables, start)
    x = Inputs(
        OBS[burn_in:].reshape(-1, FEATURES),
        None,
        RESET[burn_in:].reshape(-1),
        {"q_encoder": start},
        Inputs(OBS[:-1], None, RESET[:-1]),
    )
    close(encoder.apply(variables, x), np.concatenate(features[burn_in:]))


@pytest.mark.parametrize("name", MEMORIES)
def test_what_follows_a_step_follows_its_own_episode(name):
    """The rows of `next` are one step on from what was remembered after each step, also where an episode then ended."""
    encoder, variables = made(name)
    start = MEMORIES[name].empty(SEQUENCES)
    _, carries = step_by_step(encoder, variables, start)
    final = RNG.normal(size=OBS.shape).astype(np.float32)
    x = Inputs(final[2:].reshape(-1, FEATURES), None, None, {"q_encoder": start}, Inputs(OBS, None, RESET))
    expected = [
        encoder.apply(variables, Inputs(obs, None, None, {"q_encoder": carry}))
        for obs, carry in zip(final[2:], carries[3:], strict=True)
    ]
    close(encoder.apply(variables, x), np.concatenate(expected))


@pytest.mark.parametrize("name", MEMORIES)
def test_a_reset_forgets_all_and_nothing_else_does(name):
    encoder, variables = made(name)
    full = jax.tree.map(lambda x: jnp.full_like(x, 0.3), MEMORIES[name].empty(2))
    x = Inputs(OBS[0], None, jnp.array([1.0, 0.0]), {"q_encoder": full})
    features, carry = encoder.apply(variables, x, method="remember")
    fresh, fresh_carry = encoder.apply(variables, Inputs(OBS[0]), method="remember")
    close(features[0], fresh[0])
    close(jax.tree.map(lambda c: c[0], carry), jax.tree.map(lambda c: c[0], fresh_carry))
    assert np.abs(features[1] - fresh[1]).max() > 1e-3
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(forget(jnp.ones(2), full)))


@pytest.mark.parametrize("name", MEMORIES)
def test_a_carry_of_another_network_is_none_of_its_own(name):
    encoder, variables = made(name)
    full = jax.tree.map(lambda x: jnp.full_like(x, 0.3), MEMORIES[name].empty(2))
    stranger = encoder.apply(variables, Inputs(OBS[0], None, None, {"policy_encoder": full}))
    np.testing.assert_array_equal(stranger, encoder.apply(variables, Inputs(OBS[0])))


@pytest.mark.parametrize("name", MEMORIES)
def test_gradients_flow_through_the_sequence_and_not_into_the_burn_in(name):
    encoder, variables = made(name)
    burn_in = 2

    def last(obs: jax.Array) -> jax.Array:
        rows = obs[burn_in:].reshape(-1, FEATURES)
        x = Inputs(rows, None, None, {"q_encoder": MEMORIES[name].empty(SEQUENCES)}, Inputs(obs[:-1]))
        return jnp.square(encoder.apply(variables, x)[-SEQUENCES:]).sum()

    reached = np.abs(jax.grad(last)(jnp.asarray(OBS))).sum((1, 2))
    assert (reached[:burn_in] == 0).all() and reached[-1] > 0
    window = 3 if name == "Transformer" else STEPS - burn_in
    assert (reached[STEPS - window :] > 0).all()


HEADS = {
    "QValues": (lambda torso: heads.QValues(2, torso, dueling=True), ()),
    "QEnsemble": (heads.QEnsemble, (jnp.zeros((2, 1)),)),
    "QValuesEnsemble": (lambda torso: heads.QValuesEnsemble(2, torso), ()),
    "Value": (heads.Value, ()),
    "CategoricalPolicy": (lambda torso: heads.CategoricalPolicy(2, torso), ()),
    "GaussianPolicy": (lambda torso: heads.GaussianPolicy(1, torso), ()),
    "SquashedPolicy": (lambda torso: heads.SquashedPolicy(1, torso), ()),
    "DeterministicPolicy": (lambda torso: heads.DeterministicPolicy(1, torso), ()),
}


@pytest.mark.parametrize("name", HEADS)
def test_every_head_reads_its_own_carry(name):
    head, rest = HEADS[name]
    module = head(Torso(widths=(8,), memory=MEMORIES["GRU"]))
    variables = module.init(KEY, Inputs(OBS[0]), *rest)
    (own,) = (key for key in variables["params"] if key.endswith("_encoder"))
    outputs = [
        jax.tree.leaves(module.apply(variables, Inputs(OBS[0], None, None, {key: jnp.full((2, 4), 0.3)}), *rest))
        for key in (own, "another_encoder")
    ]
    assert any(np.abs(a - b).max() > 1e-5 for a, b in zip(*outputs, strict=True))


def test_gru_and_lstm_remember_by_their_equations():
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    x, h, c = OBS[0], *(RNG.normal(size=(2, 2, 4)).astype(np.float32))
    encoder, variables = made("GRU")
    p = jax.tree.map(np.asarray, variables["params"]["cell"])
    r = sigmoid(x @ p["ir"]["kernel"] + p["ir"]["bias"] + h @ p["hr"]["kernel"])
    z = sigmoid(x @ p["iz"]["kernel"] + p["iz"]["bias"] + h @ p["hz"]["kernel"])
    n = np.tanh(x @ p["in"]["kernel"] + p["in"]["bias"] + r * (h @ p["hn"]["kernel"] + p["hn"]["bias"]))
    features, carry = encoder.apply(variables, Inputs(x, None, None, {"q_encoder": h}), method="remember")
    close(features, (1 - z) * n + z * h)
    close(carry, features)
    encoder, variables = made("LSTM")
    p = jax.tree.map(np.asarray, variables["params"]["cell"])
    i, f, g, o = (x @ p[f"i{k}"]["kernel"] + h @ p[f"h{k}"]["kernel"] + p[f"h{k}"]["bias"] for k in "ifgo")
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    features, carry = encoder.apply(variables, Inputs(x, None, None, {"q_encoder": (c, h)}), method="remember")
    close(carry, (new, sigmoid(o) * np.tanh(new)))
    close(features, carry[1])


def test_a_transformer_sees_the_steps_of_its_window_and_their_order():
    encoder, variables = made("Transformer")

    def after(stream: np.ndarray) -> np.ndarray:
        return np.asarray(encoder.apply(variables, Inputs(OBS[-1], None, None, None, Inputs(stream))))

    base, older, inside = (np.array(OBS[:4]) for _ in range(3))
    older[:2] += 1.0  # the window of 3 holds steps 2, 3 and the present one, through any number of layers
    inside[2] += 1.0
    close(after(older), after(base))
    assert np.abs(after(inside) - after(base)).max() > 1e-3
    assert np.abs(after(base[[0, 1, 3, 2]]) - after(base)).max() > 1e-5
    close(after(base[2:]), after(base))


def test_mamba_is_the_selective_state_space():
    """The recurrence of algorithm 2, written channel by channel over a whole stream."""
    encoder, variables = made("Mamba")
    p = jax.tree.map(np.asarray, variables["params"]["cell"])
    channels, state, rank = 8, 3, 1

    def silu(x):
        return x / (1 + np.exp(-x))

    token = OBS @ p["embed"]["kernel"] + p["embed"]["bias"]
    normed = (token - token.mean(-1, keepdims=True)) / np.sqrt(token.var(-1, keepdims=True) + 1e-6)
    u, gate = np.split(normed @ p["in"]["kernel"], 2, -1)
    padded = np.concatenate([np.zeros((3, *u.shape[1:])), u])
    u = silu(sum(padded[k : k + STEPS] * p["taps"][k] for k in range(4)) + p["taps_bias"])
    low, b, c = np.split(u @ p["select"]["kernel"], [rank, rank + state], -1)
    delta = np.log1p(np.exp(low @ p["step"]["kernel"] + p["step"]["bias"]))
    a = -np.exp(p["log_a"])
    h, y = np.zeros((SEQUENCES, channels, state)), np.zeros_like(u)
    for t in range(STEPS):
        for k in range(channels):
            h[:, k] = (
                np.exp(delta[t, :, k : k + 1] * a[k]) * h[:, k] + delta[t, :, k : k + 1] * b[t] * u[t, :, k : k + 1]
            )
            y[t, :, k] = (h[:, k] * c[t]).sum(-1) + p["skip"][k] * u[t, :, k]
    expected = token + (y * silu(gate)) @ p["out"]["kernel"]
    x = Inputs(OBS.reshape(-1, FEATURES), None, None, None, Inputs(OBS[:-1]))
    np.testing.assert_allclose(encoder.apply(variables, x), expected.reshape(-1, 4), rtol=1e-3, atol=1e-4)
    sizes = np.log1p(np.exp(p["step"]["bias"]))
    assert (sizes > 0.0009).all() and (sizes < 0.1001).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Transformer(size=6, heads=4), r"Transformer\(size=6, heads=4\): heads must divide size"),
        (lambda: GRU(length=1), "length must be at least 2"),
        (lambda: LSTM(burn_in=-1), "burn_in must be at least 0"),
        (lambda: Torso(memory="gru"), "memory must be GRU or LSTM or Transformer or Mamba or None"),
        (lambda: Mamba(window=3), "Mamba has no field 'window'"),
    ],
)
def test_what_no_memory_is_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
