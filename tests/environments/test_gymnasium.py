import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ajax.core.errors import EnvironmentFault, SpaceError, UnknownName
from ajax.core.spaces import Box, Discrete
from ajax.environments.gymnasium import GymnasiumEnv


class Count(gymnasium.Env):
    """Observes the steps since the start plus 100 times the episode; terminates at 3, or is truncated at 2."""

    def __init__(self, truncates=False, observation_space=None, action_space=None):
        self.truncates = truncates
        self.observation_space = observation_space or spaces.Box(0, np.inf, (1,), np.float64)
        self.action_space = action_space or spaces.Discrete(2)
        self.episode, self.t, self.actions = -1, 0, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._obs(), {}

    def step(self, action):
        self.t += 1
        self.actions.append(action)
        return self._obs(), 1.5, not self.truncates and self.t == 3, self.truncates and self.t == 2, {}

    def _obs(self):
        return np.array([100 * self.episode + self.t], np.float64)


class Named(Count):
    """Observes a dict."""

    def __init__(self):
        super().__init__(observation_space=spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Discrete(3)))

    def _obs(self):
        return {"a": np.array([0.5, -0.5], np.float32), "b": self.t % 3}


class Uncopyable(Count):
    """Holds what can't be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("a lock is held")


def test_final_observations_are_the_ones_that_the_step_led_to():
    vector = GymnasiumEnv(Count).vector(2, seed=0)
    assert vector.reset().tolist() == [[0.0], [0.0]]
    steps = [vector.step(np.zeros(2, int)) for _ in range(4)]
    assert [s.final_obs[0, 0] for s in steps] == [1, 2, 3, 101]
    assert [s.obs[0, 0] for s in steps] == [1, 2, 100, 101]
    assert [s.terminated[0] for s in steps] == [False, False, True, False]
    assert not any(s.truncated.any() for s in steps)
    assert steps[0].obs.dtype == steps[0].reward.dtype == np.float32
    assert steps[0].reward.tolist() == [1.5, 1.5]


def test_truncation_stays_truncation():
    vector = GymnasiumEnv(lambda: Count(truncates=True)).vector(1, seed=0)
    vector.reset()
    steps = [vector.step(np.zeros(1, int)) for _ in range(2)]
    assert steps[1].truncated.tolist() == [True]
    assert steps[1].terminated.tolist() == [False]
    assert steps[1].final_obs.tolist() == [[2.0]]


def test_ids_have_spaces_and_time_limits():
    pendulum = GymnasiumEnv("Pendulum-v1")
    assert pendulum.action_space == Box(-2.0, 2.0, (1,))
    assert pendulum.time_limit == 200
    assert pendulum.name == "Pendulum-v1"
    assert GymnasiumEnv(Count).time_limit is None
    assert GymnasiumEnv(Count).name == "Count"


def test_pendulum_takes_actions_in_its_own_units_and_is_truncated_at_its_limit():
    vector = GymnasiumEnv("Pendulum-v1").vector(2, seed=3)
    obs = vector.reset()
    assert obs.shape == (2, 3)
    steps = [vector.step(np.array([[-2.0], [2.0]], np.float32)) for _ in range(200)]
    assert steps[-1].truncated.tolist() == [True, True]
    assert steps[0].obs[0, 2] - obs[0, 2] != steps[0].obs[1, 2] - obs[1, 2]
    assert not np.array_equal(steps[-1].obs, steps[-1].final_obs)


def test_seeds_start_each_copy_differently_and_repeat():
    env = GymnasiumEnv("CartPole-v1")
    first, again, shifted = (env.vector(2, seed=seed).reset() for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[1], shifted[0])


def test_dict_observations_are_flattened_also_at_the_end():
    env = GymnasiumEnv(Named)
    assert env.observation_space == Box.of([-1, -1, 0, 0, 0], [1, 1, 1, 1, 1])
    vector = env.vector(1, seed=0)
    assert vector.reset().tolist() == [[0.5, -0.5, 1, 0, 0]]
    steps = [vector.step(np.zeros(1, int)) for _ in range(3)]
    assert steps[1].final_obs.tolist() == [[0.5, -0.5, 0, 0, 1]]
    assert steps[2].final_obs.tolist() == [[0.5, -0.5, 1, 0, 0]]


def test_tuple_observations_of_a_known_task_are_flattened():
    env = GymnasiumEnv("Blackjack-v1")
    assert env.observation_space == Box.of([0.0] * 45, [1.0] * 45, (45,))


def test_bytes_stay_bytes():
    image = spaces.Box(0, 255, (4, 4, 3), np.uint8)
    assert GymnasiumEnv(lambda: Count(observation_space=image)).observation_space.dtype == "uint8"


def test_discrete_observations_are_one_hot_and_discrete_actions_count_from_zero():
    env = Count(observation_space=spaces.Discrete(20, start=-5), action_space=spaces.Discrete(2, start=4))
    env._obs = lambda: np.int64(env.t - 5)
    adapter = GymnasiumEnv(lambda: env)
    assert adapter.observation_space == Box(0.0, 1.0, (20,))
    assert adapter.action_space == Discrete(2)
    vector = adapter.vector(1, seed=0)
    assert vector.reset().argmax(1).tolist() == [0]
    assert vector.step(np.array([1])).obs.argmax(1).tolist() == [1]
    assert env.actions == [5]


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (spaces.MultiDiscrete([2, 3]), "MultiDiscrete.*one Discrete space"),
        (spaces.MultiBinary(3), "MultiBinary.*one Discrete space"),
        (spaces.Text(5), "Text.*Box of numbers"),
        (spaces.Graph(spaces.Box(0, 1, (1,)), None), "Graph.*fixed shape"),
        (spaces.Box(-np.inf, np.inf, (1,)), "infinite bounds.*RescaleAction"),
        (spaces.Box(0, 5, (1,), np.int64), "box of int64"),
    ],
)
def test_action_spaces_that_agents_can_not_act_in_are_refused(space, named):
    with pytest.raises(SpaceError, match=f"(?s)Count: the action.*{named}"):
        GymnasiumEnv(lambda: Count(action_space=space))


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.Text(5)])
def test_observation_spaces_that_networks_can_not_read_are_refused(space):
    with pytest.raises(SpaceError, match="Count: the observation space is"):
        GymnasiumEnv(lambda: Count(observation_space=space))


def test_actions_are_repeated_until_the_end_and_episodes_cut():
    vector = GymnasiumEnv(Count).with_options(None, 2).vector(1, seed=0)
    vector.reset()
    steps = [vector.step(np.zeros(1, int)) for _ in range(2)]
    assert [s.reward[0] for s in steps] == [3.0, 1.5]  # the second repeat would have begun the next episode
    assert [s.final_obs[0, 0] for s in steps] == [2, 3]
    assert steps[1].terminated[0]
    cut = GymnasiumEnv(Count).with_options(2, 1)
    assert cut.time_limit == 2
    vector = cut.vector(1, seed=0)
    vector.reset()
    steps = [vector.step(np.zeros(1, int)) for _ in range(2)]
    assert [(s.terminated[0], s.truncated[0]) for s in steps] == [(False, False), (False, True)]
    assert GymnasiumEnv("Pendulum-v1").with_options(None, 3).time_limit == 67


def test_an_instance_is_copied_for_every_vector():
    env = Count()
    adapter = GymnasiumEnv(env)
    vector = adapter.vector(3, seed=0)
    vector.reset()
    vector.step(np.zeros(3, int))
    assert (env.episode, env.t) == (-1, 0)


def test_an_instance_that_can_not_be_copied_serves_once():
    adapter = GymnasiumEnv(Uncopyable())
    assert adapter.vector(1, seed=0).reset().shape == (1, 1)
    with pytest.raises(EnvironmentFault, match=r"can't be copied.*Give a function"):
        adapter.vector(1, seed=0)
    with pytest.raises(EnvironmentFault, match="n_envs=2"):
        GymnasiumEnv(Uncopyable()).vector(2, seed=0)


def test_unknown_ids_suggest_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'CartPole-v1'"):
        GymnasiumEnv("CartPoll-v1")
