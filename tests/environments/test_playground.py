import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import UnknownName
from ajax.core.spaces import Box
from ajax.environments.registry import make

pytest.importorskip("mujoco_playground")


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'CartpoleBalance'"):
        make("playground:CartPoleBalance")


@pytest.mark.slow
@jax.numpy_rank_promotion("allow")  # MuJoCo's own code relies on it
def test_cartpole_steps_several_copies_and_is_truncated_at_its_own_length():
    env = make("playground:CartpoleBalance")
    assert env.action_space == Box(-1.0, 1.0, (1,))
    assert env.time_limit == 1000
    keys = jax.random.split(jax.random.key(0), 2)
    state, obs = jax.jit(jax.vmap(env.reset))(keys)
    assert obs.shape == (2, *env.observation_space.shape)
    late = state.replace(time=jnp.array([998, 999]))
    broken = late.replace(inner=late.inner.replace(data=late.inner.data.replace(qpos=late.inner.data.qpos * jnp.nan)))
    step = jax.jit(jax.vmap(env.step))
    _, healthy = step(keys, late, jnp.zeros((2, 1)))
    assert healthy.truncated.tolist() == [False, True]
    assert healthy.terminated.tolist() == [False, False]
    assert np.all(healthy.reward > 0)
    _, diverged = step(keys, broken, jnp.zeros((2, 1)))
    assert diverged.terminated.all()
    assert diverged.reward.tolist() == [0.0, 0.0]
    assert np.all(np.isfinite(diverged.obs))
