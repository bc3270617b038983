import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax.core.errors import ConfigError, SpaceError
from ajax.core.spaces import Box, Discrete
from ajax.environments.base import Step
from ajax.environments.gymnax import GymnaxEnv
from ajax.environments.wrappers import ActionRepeat, FlattenObservation, TimeLimit
from tests.environments.identity_env import IdentityEnv

KEY = jax.random.key(0)


@struct.dataclass
class Walk:
    """Counts its steps; terminates at `end`. Reward 1 a step, also after the end."""

    end: int = 3
    observation_space = Box(0.0, np.inf, (1,))
    action_space = Discrete(2)

    def reset(self, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, key, state, action):
        state = state + 1
        return state, Step(
            jnp.reshape(state, 1).astype(jnp.float32), jnp.float32(1), state >= self.end, jnp.zeros((), bool)
        )


@struct.dataclass
class Nested(Walk):
    """Observes a dict of an image, a pair and a category."""

    observation_space = {"image": Box(0, 255, (2, 2), "uint8"), "pair": (Box(-1.0, 1.0, (1,)), Discrete(3))}  # noqa

    def _nested(self, state):
        return {"image": jnp.full((2, 2), 7, jnp.uint8), "pair": (jnp.full(1, 0.5), state % 3)}

    def reset(self, key):
        return jnp.int32(0), self._nested(jnp.int32(0))

    def step(self, key, state, action):
        state, step = Walk.step(self, key, state, action)
        return state, step.replace(obs=self._nested(state))


def walk(env, n):
    state, _ = env.reset(KEY)
    steps = []
    for _ in range(n):
        state, step = env.step(KEY, state, env.action_space.zeros())
        steps.append(step)
    return steps


def flags(steps):
    return [(bool(s.terminated), bool(s.truncated)) for s in steps]


def test_time_limit_truncates_at_exactly_its_limit():
    assert flags(walk(TimeLimit(Walk(end=9), 3), 3)) == [(False, False), (False, False), (False, True)]


def test_time_limit_keeps_a_termination_before_and_at_the_limit():
    assert flags(walk(TimeLimit(Walk(end=2), 3), 2))[-1] == (True, False)
    assert flags(walk(TimeLimit(Walk(end=3), 3), 3))[-1] == (True, True)


def test_time_limit_keeps_a_truncation_of_its_own_environment():
    env = TimeLimit(GymnaxEnv.of("Pendulum-v1"), 300)
    state, _ = env.reset(KEY)
    late = state.replace(inner=state.inner.replace(time=jnp.int32(199)))
    assert bool(env.step(KEY, late, jnp.zeros(1))[1].truncated)


def test_action_repeat_sums_rewards_and_gives_the_last_observation():
    (step,) = walk(ActionRepeat(Walk(end=9), 4), 1)
    assert float(step.reward) == 4.0
    assert float(step.obs[0]) == 4.0


def test_action_repeat_stops_at_an_inner_end():
    (step,) = walk(ActionRepeat(Walk(end=1), 4), 1)
    assert float(step.reward) == 1.0
    assert float(step.obs[0]) == 1.0
    assert flags([step]) == [(True, False)]
    (cut,) = walk(ActionRepeat(TimeLimit(Walk(end=9), 2), 4), 1)
    assert (float(cut.reward), float(cut.obs[0]), flags([cut])) == (2.0, 2.0, [(False, True)])


def test_action_repeat_once_changes_nothing():
    state, _ = IdentityEnv().reset(KEY)
    plain = IdentityEnv().step(KEY, state, jnp.int32(1))
    repeated = ActionRepeat(IdentityEnv(), 1).step(KEY, state, jnp.int32(1))
    jax.tree.map(np.testing.assert_array_equal, plain, repeated)


def test_action_repeat_counts_its_time_limit_in_its_own_steps():
    assert ActionRepeat(TimeLimit(Walk(), 5), 2).time_limit == 3
    assert ActionRepeat(Walk(), 2).time_limit is None


def test_flatten_joins_leaves_in_tree_order_also_at_the_end():
    env = FlattenObservation(Nested(end=2))
    assert env.observation_space == Box.of([0] * 4 + [-1] + [0] * 3, [255] * 4 + [1] + [1] * 3)
    _, obs = env.reset(KEY)
    np.testing.assert_array_equal(obs, [7, 7, 7, 7, 0.5, 1, 0, 0])
    final = walk(env, 2)[-1]
    np.testing.assert_array_equal(final.obs, [7, 7, 7, 7, 0.5, 0, 0, 1])
    assert bool(final.terminated)
    assert final.obs.dtype == jnp.float32


def test_flatten_refuses_what_it_can_not_join():
    class Odd(Walk):
        observation_space = {"text": "anything"}  # noqa: RUF012

    with pytest.raises(SpaceError, match="'anything' is not a Box"):
        _ = FlattenObservation(Odd()).observation_space


@pytest.mark.parametrize("make", [lambda: TimeLimit(Walk(), 0), lambda: ActionRepeat(Walk(), 0)])
def test_counts_below_one_are_refused(make):
    with pytest.raises(ConfigError, match="at least 1"):
        make()


def test_a_stack_counts_its_time_limit_in_its_own_steps():
    assert FlattenObservation(ActionRepeat(TimeLimit(GymnaxEnv.of("CartPole-v1"), 7), 2)).time_limit == 4


def test_identity_episodes_end_as_they_say():
    env = IdentityEnv()
    for seed in range(8):
        state, (t, c) = env.reset(jax.random.key(seed))
        for t in range(1, 6):
            state, step = env.step(KEY, state, jnp.int32(1))
            assert float(step.reward) == c * (10 * (t - 1) + 1)
            assert flags([step]) == [(c > 0 and t >= 3, c < 0 and t >= 5)]
            if step.terminated:
                break
