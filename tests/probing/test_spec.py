"""One Spec, three readings of it: the JAX environment, the Gymnasium one and a plain-Python interpreter."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from ajax.core.errors import EnvironmentFault
from ajax.core.spaces import Box, Discrete
from ajax.environments.base import Env
from ajax.probing.spec import Spec, parabola

STEPS = 12
BOX = Box.of([-0.5], [2.0])


@st.composite
def specs(draw) -> Spec:
    n_states, n_actions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    weights = st.lists(st.integers(0, 3), min_size=n_states, max_size=n_states).filter(any)
    start = np.array(draw(weights), float)
    table = {
        (s, a): [
            (weight, draw(st.integers(0, n_states - 1)), draw(st.integers(-4, 4)) / 4, draw(st.booleans()))
            for weight in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        ]
        for s in range(n_states)
        for a in range(n_actions)
    }
    limit = draw(st.none() | st.integers(1, 4))
    box = draw(st.sampled_from([None, BOX]))
    curves = draw(st.lists(st.sampled_from([0.0, 0.5, -1.0]), min_size=n_states, max_size=n_states))
    return Spec.of(
        "random",
        lambda s, a: [(w / sum(o[0] for o in table[s, a]), *rest) for w, *rest in table[s, a]],
        n_states=n_states,
        n_actions=None if box else n_actions,
        obs=[[s, -s] for s in range(n_states)],
        start=(start / start.sum()).tolist(),
        limit=limit,
        stagger=draw(st.integers(1, limit)) if limit else 1,
        box=box,
        edges=np.linspace(0, 1, n_actions)[1:] if box else (),
        quadratic=(lambda s: parabola(curves[s])) if box else None,
        record=2,
    )


def pick(probabilities: np.ndarray, u: float) -> int:
    total = 0.0
    for i, p in enumerate(probabilities):
        total += p
        if u < total - 1e-9:
            return i
    return int(np.flatnonzero(probabilities)[-1])


def interpret(spec: Spec, actions, uniforms):
    """The Spec's rules once more: rows of (obs, reward, terminated, truncated, obs after reset)."""
    uniforms = iter(uniforms)

    def begin():
        state = pick(spec.start, next(uniforms))
        return state, int(next(uniforms) * spec.stagger), spec.obs[state]

    state, clock, first = begin()
    rows = [first]
    for action in actions:
        region = action if spec.box is None else sum(edge <= action[0] for edge in spec.edges)
        k = pick(spec.probability[state, region], next(uniforms))
        reward = spec.reward[state, region, k]
        if spec.box is not None:
            c = spec.quadratic[state, 0]
            reward += c[0] + c[1] * action[0] + c[2] * action[0] ** 2
        terminated, state = spec.terminated[state, region, k], spec.next_state[state, region, k]
        clock += 1
        truncated = spec.limit is not None and clock >= spec.limit
        final = spec.obs[state]
        if terminated or truncated:
            state, clock, after = begin()
        else:
            after = final
        rows.append((final, reward, terminated, truncated, after))
    return rows


def drive_jax(spec: Spec, actions, uniforms):
    env, draws = spec.env(), iter(uniforms)

    def uniform(key, shape=()):  # the environment's only source of chance
        return jnp.asarray([next(draws) for _ in range(int(np.prod(shape)))], jnp.float32).reshape(shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "uniform", uniform)
        place, first = env.reset(None)
        rows = [first]
        for action in actions:
            place, step = env.step(None, place, jnp.asarray(action))
            after = step.obs
            if step.terminated or step.truncated:
                place, after = env.reset(None)
            rows.append((step.obs, step.reward, step.terminated, step.truncated, after))
    return rows


def drive_gymnasium(spec: Spec, actions, uniforms):
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: spec.gymnasium(iter(uniforms).__next__)], autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )
    rows = [env.reset()[0][0]]
    for action in actions:
        after, reward, terminated, truncated, info = env.step(np.asarray([action]))
        final = info["final_obs"][0] if terminated[0] or truncated[0] else after[0]
        rows.append((final, reward[0], terminated[0], truncated[0], after[0]))
    return rows


def assert_same(left, right):
    np.testing.assert_array_equal(left[0], right[0])
    for a, b in zip(left[1:], right[1:], strict=True):
        for mine, other in zip(a, b, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(specs(), st.integers(0, 2**31))
def test_jax_gymnasium_and_interpreter_agree(spec, seed):
    rng = np.random.default_rng(seed)
    uniforms = rng.random(4 * STEPS, dtype=np.float32).tolist()
    if spec.box is None:
        actions = rng.integers(0, spec.n_actions, STEPS).tolist()
    else:
        actions = rng.uniform(-1, 2.5, (STEPS, 1)).astype(np.float32)
    expected = interpret(spec, actions, uniforms)
    assert_same(drive_jax(spec, actions, uniforms), expected)
    assert_same(drive_gymnasium(spec, actions, uniforms), expected)


def two_step(**changes) -> Spec:
    options = {"n_states": 3, "n_actions": 3} | changes
    return Spec.of(
        "two-step chain", lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True), **options
    )


def test_transitions_of_different_specs_share_a_compiled_program():
    traced = []

    @jax.jit
    def roll(env, key):
        traced.append(1)
        place, _ = env.reset(key)
        return env.step(key, place, jnp.int32(2))[1].reward

    other = Spec.of("bandit", lambda s, a: [(0.5, 0, 3.0, True), (0.5, 0, 3.0, False)], n_states=1, n_actions=3)
    assert roll(two_step().env(), jax.random.key(0)) == 0.0
    assert roll(other.env(), jax.random.key(0)) == 3.0
    assert len(traced) == 1


def test_outcomes_come_with_their_probabilities():
    spec = Spec.of("coin", lambda s, a: [(0.2, 0, 1.0, True), (0.8, 0, 0.0, True)], n_states=1, n_actions=1)
    env = spec.env()
    place, _ = env.reset(jax.random.key(0))
    rewards = jax.vmap(lambda key: env.step(key, place, jnp.int32(0))[1].reward)(
        jax.random.split(jax.random.key(1), 4000)
    )
    assert abs(float(rewards.mean()) - 0.2) < 0.03


def test_stagger_puts_copies_out_of_step():
    env = Spec.of("loop", lambda s, a: (0, 1.0, False), n_states=1, n_actions=1, limit=4, stagger=4).env()
    places, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 64))
    assert set(np.asarray(places.clock).tolist()) == {0, 1, 2, 3}


def test_a_termination_at_the_time_limit_raises_both_flags():
    env = Spec.of("end", lambda s, a: (0, 1.0, True), n_states=1, n_actions=1, limit=1).env()
    place, _ = env.reset(jax.random.key(0))
    _, step = env.step(jax.random.key(0), place, jnp.int32(0))
    assert bool(step.terminated) and bool(step.truncated)


def test_executed_actions_are_recorded_as_received():
    spec = Spec.of("box", lambda s, r: (0, 0.0, False), n_states=1, box=BOX, record=2)
    env, other = spec.env(), spec.gymnasium()
    place, _ = env.reset(jax.random.key(0))
    other.reset(seed=0)
    for action in (1.0, 1.5, 3.0):
        place, _ = env.step(jax.random.key(0), place, jnp.array([action]))
        other.step(np.array([action], np.float32))
    assert np.asarray(place.executed)[:, 0].tolist() == [3.0, 1.5]
    assert [float(a[0]) for a in other.executed] == [1.5, 3.0]
    assert place.count == 3


def test_spaces_and_protocol():
    spec = two_step()
    assert isinstance(spec.env(), Env)
    assert spec.env().action_space == Discrete(3)
    assert spec.env().observation_space.shape == (8,)
    assert spec.gymnasium().action_space.n == 3
    check_env(spec.gymnasium(), skip_render_check=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: two_step(box=BOX), "give either n_actions or box"),
        (lambda: two_step(n_states=2), "next states must lie in 0 .. 1; got 2"),
        (lambda: two_step(start=[0.5, 0.2, 0.2]), "summing to 1"),
        (lambda: two_step(limit=0), "limit=0 must be at least 1 step"),
        (lambda: two_step(limit=3, stagger=4), "stagger=4 must lie in 1 .. limit=3"),
        (
            lambda: Spec.of("p", lambda s, a: [(0.5, 0, 0.0, True)], n_states=1, n_actions=1),
            "state 0, action 0 have probabilities [0.5]",
        ),
    ],
)
def test_impossible_specs_are_refused(make, message):
    with pytest.raises(EnvironmentFault, match="Spec") as error:
        make()
    assert message in str(error.value)
