"""Heads: shapes, the dueling identity, independent critics, and the policies' ranges."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.learn import adam, make
from ajax.core.records import Inputs
from ajax.networks import heads
from ajax.networks.cnn import CNN
from ajax.networks.torsos import Torso

TORSO = Torso(widths=(8, 8))
X = Inputs(jax.random.normal(jax.random.key(9), (5, 3)))
ACTION = jax.random.uniform(jax.random.key(8), (5, 2), minval=-1.0)
INDEX = jnp.array([0, 3, 1, 2, 3])


def made(module: Any, *inputs: Any) -> tuple[dict, Any]:
    """First parameters, and what the module returns with them."""
    out, variables = jax.jit(module.init_with_output)(jax.random.key(0), *inputs)
    return variables["params"], out


@pytest.mark.parametrize(
    ("module", "inputs", "shape"),
    [
        (heads.QValues(4, TORSO), (X,), (5, 4)),
        (heads.QValues(4, TORSO, dueling=True), (X,), (5, 4)),
        (heads.QEnsemble(TORSO), (X, ACTION), (2, 5)),
        (heads.QEnsemble(TORSO, 7), (X, ACTION), (7, 5)),
        (heads.QValuesEnsemble(4, TORSO), (X,), (2, 5, 4)),
        (heads.QValuesEnsemble(4, TORSO), (X, INDEX), (2, 5)),
        (heads.Value(TORSO), (X,), (5,)),
        (heads.DeterministicPolicy(2, TORSO), (X,), (5, 2)),
        (heads.Scalar(0.5), (), ()),
    ],
)
def test_shapes(module, inputs, shape):
    assert made(module, *inputs)[1].shape == shape


def test_dueling_adds_the_advantages_centred_over_actions():
    module = heads.QValues(4, TORSO, dueling=True)
    p, q = made(module, X)
    value = heads.MLP(TORSO, 1).apply({"params": p["value"]}, X.obs)
    advantage = heads.MLP(TORSO, 4).apply({"params": p["advantage"]}, X.obs)
    np.testing.assert_allclose(q, value + advantage - advantage.mean(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(q.mean(-1), value[:, 0], rtol=1e-5, atol=1e-6)  # the mean over actions is V
    assert np.asarray(q.std(-1)).min() > 0


def test_dueling_ignores_a_shift_of_all_advantages():
    module = heads.QValues(4, TORSO, dueling=True)
    p, q = made(module, X)
    p["advantage"]["Dense_2"]["bias"] += 100.0
    np.testing.assert_allclose(module.apply({"params": p}, X), q, atol=1e-4)


@pytest.mark.parametrize("module", [heads.QEnsemble(TORSO, 3), heads.QValuesEnsemble(4, TORSO, 3)])
def test_critics_start_different_and_depend_on_their_own_weights_alone(module):
    action = ACTION if isinstance(module, heads.QEnsemble) else INDEX
    p, q = made(module, X, action)
    assert np.abs(np.diff(np.asarray(q), axis=0)).min() > 0
    moved = jax.tree.map(lambda leaf: leaf.at[1].add(1.0), p)
    changed = np.abs(np.asarray(module.apply({"params": moved}, X, action) - q)).max(-1) > 0
    assert changed.tolist() == [False, True, False]


def test_a_member_of_an_ensemble_is_the_mlp_of_its_weights():
    module = heads.QEnsemble(TORSO)
    p, q = made(module, X, ACTION)
    (stacked,) = p.values()
    rows = jnp.concatenate([X.obs, ACTION], -1)
    for i in range(2):
        alone = heads.MLP(TORSO, 1).apply({"params": jax.tree.map(lambda leaf, i=i: leaf[i], stacked)}, rows)
        np.testing.assert_allclose(q[i], alone[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("torso", [TORSO, Torso(widths=(8,), cnn=CNN(channels=(2,), kernels=(2,), strides=(1,)))])
def test_members_are_the_critics_at_their_indices(torso):
    x = X if torso.cnn is None else Inputs(jax.random.normal(jax.random.key(1), (5, 4, 4, 1)))
    critics = make(heads.QEnsemble(torso, 4), adam(), jax.random.key(0), x, ACTION)
    chosen = heads.members(critics, jnp.array([2, 0]))
    np.testing.assert_allclose(chosen(x, ACTION), critics(x, ACTION)[jnp.array([2, 0])], rtol=1e-5)


def test_critics_see_the_action():
    module = heads.QEnsemble(TORSO)
    p, q = made(module, X, ACTION)
    assert np.abs(np.asarray(module.apply({"params": p}, X, -ACTION) - q)).min() > 0


def test_one_action_of_a_discrete_critic_is_its_entry():
    module = heads.QValuesEnsemble(4, TORSO)
    p, chosen = made(module, X, INDEX)
    q = module.apply({"params": p}, X)
    np.testing.assert_array_equal(chosen, q[:, jnp.arange(5), INDEX])


def test_a_categorical_policy_starts_near_uniform():
    _, pi = made(heads.CategoricalPolicy(4, Torso(initializer="orthogonal")), X)
    np.testing.assert_allclose(jnp.exp(pi.log_probs), 0.25, atol=0.02)


def test_a_gaussian_policy_has_one_free_deviation_a_dimension():
    module = heads.GaussianPolicy(2, TORSO)
    p, pi = made(module, X)
    assert p["log_std"].shape == (2,) and pi.loc.shape == pi.log_std.shape == (5, 2)
    assert pi.log_prob(ACTION).shape == pi.entropy().shape == (5,)
    assert np.abs(np.asarray(pi.loc)).max() < 0.1  # the mean starts small
    p["log_std"] = jnp.array([0.5, -0.5])
    np.testing.assert_array_equal(module.apply({"params": p}, X).log_std[3], [0.5, -0.5])


@pytest.mark.parametrize(("bias", "log_std"), [(100.0, 2.0), (-100.0, -20.0), (1.0, 1.0)])
def test_a_squashed_policy_clips_its_log_deviation(bias, log_std):
    module = heads.SquashedPolicy(2, Torso(widths=()))
    p, _ = made(module, X)
    p["MLP_0"]["Dense_0"]["kernel"] *= 0.0
    p["MLP_0"]["Dense_0"]["bias"] = jnp.array([0.3, -0.3, bias, bias])
    pi = module.apply({"params": p}, X)
    np.testing.assert_allclose(pi.loc[0], [0.3, -0.3])
    np.testing.assert_allclose(pi.log_std, log_std)


@pytest.mark.parametrize(("free", "log_std"), [(-9.0, -5.0), (0.5, 0.5), (9.0, 2.0)])
def test_a_policy_with_a_squashed_mean_has_one_bounded_deviation_a_dimension(free, log_std):
    module = heads.TanhMeanPolicy(2, TORSO)
    p, pi = made(module, X)
    assert np.abs(np.asarray(pi.loc)).max() < 1 and (pi.log_std == 0).all()
    p["log_std"] = jnp.full(2, free)
    assert (module.apply({"params": p}, X).log_std == log_std).all()


def test_a_deterministic_policy_stays_in_the_box():
    module = heads.DeterministicPolicy(2, TORSO)
    p, _ = made(module, X)
    far = module.apply({"params": jax.tree.map(lambda leaf: 100.0 * leaf, p)}, X)
    assert np.abs(np.asarray(far)).max() <= 1.0 and np.abs(np.asarray(far)).max() > 0.99


def test_actor_and_critic_share_no_parameters():
    module = heads.ActorCritic(heads.CategoricalPolicy(4, TORSO), heads.Value(TORSO))
    p, (pi, value) = made(module, X)
    slope = jax.grad(lambda p: module.apply({"params": p}, X)[1].sum())(p)
    assert pi.logits.shape == (5, 4) and value.shape == (5,)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(slope["policy"]))
    assert any((leaf != 0).any() for leaf in jax.tree.leaves(slope["value"]))


def test_a_scalar_starts_where_it_is_told():
    assert float(made(heads.Scalar(0.5))[1]) == 0.5


def test_observations_of_bytes_are_read():
    _, q = made(heads.QEnsemble(TORSO), Inputs(jnp.full((5, 4, 4), 7, jnp.uint8)), ACTION)
    assert q.shape == (2, 5) and q.dtype == jnp.float32 and np.isfinite(q).all()
