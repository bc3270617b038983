"""What an expert does is recorded in the environment's units, in order, and a trained agent is an expert."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax import Box, demonstrate
from ajax.core.errors import ConfigError
from ajax.core.expert import Expert, Stateless
from ajax.training.pretrain import play
from ajax.training.run import Task
from tests.environments.identity_env import IdentityEnv
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_PPO, TINY_SAC, train


@struct.dataclass
class Wide(IdentityEnv):
    """The identity task whose actions go from -2 to 6."""

    @property
    def action_space(self):
        return Box(-2.0, 6.0, (1,))


class Flip(Expert):
    """Takes 3, -1, 3, ... in every episode."""

    def init(self):
        return jnp.float32(-1.0)

    def act(self, memory, obs, key):
        return (2.0 - memory)[None], 2.0 - memory


def test_transitions_are_in_order_and_whole():
    data = demonstrate(Flip(), Wide(), 40, seed=3)
    t, c = data.obs.T
    np.testing.assert_allclose(data.action[:, 0], np.where(t % 2 == 0, 3.0, -1.0), atol=1e-6)
    np.testing.assert_allclose(data.reward, c * (10 * t + data.action[:, 0]), atol=1e-4)
    np.testing.assert_array_equal(data.next_obs, np.stack([t + 1, c], 1))
    np.testing.assert_array_equal(data.terminated, (c > 0) & (t == 2))
    np.testing.assert_array_equal(data.truncated[:-1], ((c < 0) & (t == 4))[:-1])
    assert data.truncated[-1] or data.terminated[-1]
    ended = (data.terminated | data.truncated)[:-1]
    np.testing.assert_array_equal(t[1:], np.where(ended, 0, t[:-1] + 1))
    assert len(data.store(Task(Wide(), 1).spec).rows.reward) == 40


def test_seeds_differ_and_options_reach_the_environment():
    first, again, other = (demonstrate(Flip(), Wide(), 20, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.obs, again.obs)
    assert not np.array_equal(first.obs, other.obs)
    short = demonstrate(Flip(), Wide(), 8, episode_length=2)
    np.testing.assert_array_equal(short.truncated, [False, True] * 4)
    assert demonstrate(Flip(), Wide(), 4, action_repeat=2).next_obs[0, 0] == 2


def test_gymnasium_environments_too():
    data = demonstrate(Stateless(lambda obs: -2.0 * jnp.sign(obs[2:])), "gymnasium:Pendulum-v1", 12, episode_length=5)
    np.testing.assert_allclose(data.action[:, 0], -2.0 * np.sign(data.obs[:, 2]))
    np.testing.assert_array_equal(np.flatnonzero(data.truncated), [4, 9, 11])


def test_several_environments_draw_apart():
    rows = play(Task(DISCRETE, 3), Stateless(lambda obs: 1), 12, jax.random.key(0))
    assert rows.reward.shape == (12, 3) and len({tuple(rows.now.obs[:, i, 1].tolist()) for i in range(3)}) == 3


@pytest.mark.parametrize("agent, env", [(TINY_SAC, CONTINUOUS), (TINY_PPO, DISCRETE)], ids=["SAC", "PPO"])
def test_a_trained_agent_is_an_expert(agent, env):
    result = train(agent, env, 16, normalize_observations=True)
    data = demonstrate(result.expert(), env, 12)
    np.testing.assert_allclose(np.asarray(data.action).reshape(12), result.act(data.obs).reshape(12), atol=1e-5)


def test_what_is_no_expert_or_no_count_is_refused():
    with pytest.raises(ConfigError, match=r"is no Expert\. A function of one observation: Stateless"):
        demonstrate(lambda obs: 0, DISCRETE, 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="steps=0"):
        demonstrate(Flip(), Wide(), 0)
