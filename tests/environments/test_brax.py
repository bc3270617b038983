import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import UnknownName
from ajax.core.spaces import Box
from ajax.environments import brax
from ajax.environments.registry import make

pytest.importorskip("brax")


def test_names_are_braxs_own():
    from brax import envs

    assert sorted(brax.NAMES) == sorted(envs._envs)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'ant'"):
        make("brax:ants")


@pytest.mark.slow
def test_inverted_pendulum_terminates_when_it_falls_and_is_truncated_at_the_limit():
    env = make("brax:inverted_pendulum")
    assert env.action_space == Box(-1.0, 1.0, (1,))
    assert env.time_limit == 1000
    short = env.replace(limit=4)
    key = jax.random.key(0)

    @jax.jit
    def rollout(state, actions):
        return jax.lax.scan(lambda s, a: short.step(key, s, a), state, actions)

    start, obs = jax.jit(short.reset)(key)
    assert obs.shape == env.observation_space.shape and obs.dtype == jnp.float32
    _, still = rollout(start, jnp.zeros((40, 1)))
    assert np.flatnonzero(still.truncated)[0] == 3
    assert not still.terminated[:4].any()
    _, pushed = rollout(start, jnp.ones((40, 1)))
    fallen = int(np.flatnonzero(pushed.terminated)[0])
    assert abs(float(pushed.obs[fallen, 1])) > 0.2  # Brax's own condition, an angle in radians
    assert pushed.reward.dtype == jnp.float32
