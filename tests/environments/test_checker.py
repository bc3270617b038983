"""One deliberately broken environment a fault, for each kind; sound environments give no fault."""

import re

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnasium import spaces

from ajax.core.errors import EnvironmentFault, UnknownName
from ajax.core.spaces import Box
from ajax.environments.base import Step
from ajax.environments.checker import check_env
from tests.environments.identity_env import IdentityEnv

LENGTH = 12


@struct.dataclass
class Sound:
    """A point on a line that actions push about; terminates off the line's ends, truncated after LENGTH steps."""

    observation_space = Box.of([-4.0, 0.0], [4.0, LENGTH])
    action_space = Box(-2.0, 2.0, (1,))

    def reset(self, key):
        return self._seen(jax.random.uniform(key, (), minval=-0.5, maxval=0.5), 0.0)

    def step(self, key, state, action):
        x, t = state
        x, t = jnp.clip(x + self._push(action[0]), -4.0, 4.0), t + 1.0
        state, obs = self._seen(x, t)
        return state, Step(obs, -(x**2), abs(x) > 2.0, t >= LENGTH)

    def _push(self, action):
        return action

    def _seen(self, x, t):
        state = jnp.stack([jnp.float32(x), jnp.float32(t)])
        return state, state


def changed(**members):
    return type("Broken", (Sound,), members)()


def of_step(change):
    def step(self, key, state, action):
        state, out = Sound.step(self, key, state, action)
        return change(self, key, state, out)

    return changed(step=step)


def auto_reset(self, key, state, out):
    start, obs = self.reset(key)
    ended = out.terminated | out.truncated
    return jnp.where(ended, start, state), out.replace(obs=jnp.where(ended, obs, out.obs))


def impure(self, key, state, out):
    return state, out.replace(reward=out.reward + np.random.rand())  # noqa: NPY002


class Counter:
    """Keeps a count of its own."""

    observation_space, action_space = Sound.observation_space, Sound.action_space

    def __init__(self):
        self.calls = 0

    def reset(self, key):
        return Sound().reset(key)

    def step(self, key, state, action):
        self.calls += 1
        return Sound().step(key, state, action)


def steering(self, key, state, action):
    return Sound.step(self, key, state, action) if action[0] > 0 else None


BROKEN = {
    "observation's shape at reset": (
        changed(reset=lambda self, key: (jnp.zeros(2), jnp.zeros(3))),
        r"in reset: the observation of `reset` has shape \(3,\); it must have \(2,\)",
    ),
    "observation's shape at step": (
        of_step(lambda self, key, s, o: (s, o.replace(obs=jnp.zeros(3)))),
        r"in step: the observation of `step` has shape \(3,\)",
    ),
    "observation's dtype": (
        of_step(lambda self, key, s, o: (s, o.replace(obs=o.obs.astype(jnp.int32)))),
        "has dtype int32; it must have float32",
    ),
    "observation out of bounds": (
        of_step(lambda self, key, s, o: (s, o.replace(obs=o.obs.at[0].add(9.0)))),
        r"in step: observation\[0\] is .*, outside its bounds \[-4.0, 4.0\]",
    ),
    "observation not a number": (
        of_step(lambda self, key, s, o: (s, o.replace(obs=jnp.where(o.obs[1] == 3, jnp.nan, o.obs)))),
        "in step: the observation is nan at step 2",
    ),
    "reward not a scalar": (
        of_step(lambda self, key, s, o: (s, o.replace(reward=o.reward[None]))),
        r"the reward has shape \(1,\)",
    ),
    "reward's dtype": (
        of_step(lambda self, key, s, o: (s, o.replace(reward=jnp.int32(1)))),
        "the reward has dtype int32",
    ),
    "reward not finite": (
        of_step(lambda self, key, s, o: (s, o.replace(reward=jnp.log(jnp.maximum(3.0 - s[1], 0.0))))),
        "in step: the reward is -inf at step 2",
    ),
    "flag not a bool": (
        of_step(lambda self, key, s, o: (s, o.replace(terminated=o.terminated.astype(jnp.float32)))),
        "`terminated` has dtype float32",
    ),
    "missing final observation": (of_step(auto_reset), "likely, in step: .*the final observation is missing"),
    "both flags for one end": (
        of_step(
            lambda self, key, s, o: (
                s,
                o.replace(terminated=o.terminated | o.truncated, truncated=o.terminated | o.truncated),
            )
        ),
        "ended both terminated and truncated",
    ),
    "time limit as termination": (
        of_step(lambda self, key, s, o: (s, o.replace(terminated=o.truncated, truncated=jnp.zeros((), bool)))),
        "likely, in step: each of the .* episodes ended terminated, after 12 steps: a time limit",
    ),
    "randomness of its own": (of_step(impure), "in step: the same keys, states and actions gave different results"),
    "an attribute that counts": (Counter(), "running the environment changes its attribute `calls`"),
    "a Python branch": (changed(step=steering), "JAX can't trace it"),
    "actions ignored": (
        changed(_push=lambda self, action: 0.3),
        "the lowest, middle and highest action lead to the same",
    ),
    "action box cut": (
        changed(_push=lambda self, action: jnp.clip(action, -1.0, 1.0)),
        r"edges of the action box \[-2, 2\] lead to the same as when cut to \[-1, 1\]",
    ),
    "action box without bounds": (changed(action_space=Box(shape=(1,))), "infinite bounds"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_fault_is_said_in_a_sentence(fault):
    env, sentence = BROKEN[fault]
    report = check_env(env, seeds=4, steps=40)
    assert len(report.faults) == 1, str(report)
    assert re.search(sentence, str(report)), str(report)


@pytest.mark.parametrize("env", [Sound(), IdentityEnv(), IdentityEnv(continuous=True)])
def test_sound_environments_give_no_fault(env):
    report = check_env(env, seeds=8, steps=40)
    assert report.faults == (), str(report)
    assert report.episodes > 0 and report.steps == 320
    assert "no faults found (320 steps" in str(report)
    report.raise_if_faulty()


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_known_tasks_give_no_fault(name):
    report = check_env(name, steps=220)
    assert report.faults == (), str(report)


def test_certain_faults_raise_and_likely_ones_do_not():
    with pytest.raises(EnvironmentFault, match=r"(?s)1 fault \(40 steps.*different results"):
        check_env(BROKEN["randomness of its own"][0], seeds=2, steps=20).raise_if_faulty()
    check_env(BROKEN["actions ignored"][0], seeds=2, steps=20).raise_if_faulty()


def test_missing_members_are_each_a_fault():
    report = check_env(type("Bare", (), {"reset": 0, "step": 0})())
    assert [fault.where for fault in report.faults] == ["observation_space", "action_space"]
    assert str(report).startswith("Bare: 2 faults")


def test_what_a_name_stands_for_is_checked_too(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from tests.environments.test_checker import BROKEN\nmake = lambda: BROKEN['flag not a bool'][0]\n")
    assert "`terminated` has dtype float32" in str(check_env(f"{file}:make"))
    assert check_env("DeepSea-bsuite", seeds=2, steps=20).env == "DeepSea-bsuite"
    import gymnax

    assert check_env(gymnax.make("CartPole-v1")[0], seeds=2, steps=50).faults == ()


def test_an_unknown_name_is_no_fault_of_an_environment():
    with pytest.raises(UnknownName, match="CartPole-v1"):
        check_env("CartPole-v7")


class HostSound(gymnasium.Env):
    """`Sound` for Gymnasium."""

    def __init__(self):
        self.observation_space = spaces.Box(np.float32([-4, 0]), np.float32([4, LENGTH]))
        self.action_space = spaces.Box(-2, 2, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.uniform(-0.5, 0.5), 0
        return self._seen(), {}

    def step(self, action):
        self.x, self.t = np.clip(self.x + self._push(action[0]), -4, 4), self.t + 1
        return self._seen(), -(self.x**2), bool(abs(self.x) > 2), self.t >= LENGTH, {}

    def _push(self, action):
        return action

    def _seen(self):
        return np.array([self.x, self.t], np.float32)


def host_step(change):
    def step(self, action):
        return change(self, *HostSound.step(self, action))

    return type("Broken", (HostSound,), {"step": step})()


def host_restart(self, obs, reward, terminated, truncated, info):
    return self.reset()[0] if terminated or truncated else obs, reward, terminated, truncated, info


HOST_BROKEN = {
    "shape": (host_step(lambda self, o, *rest: (np.zeros(3, np.float32), *rest)), r"has shape \(3,\); the space says"),
    "dtype": (host_step(lambda self, o, *rest: (o.astype(np.float64), *rest)), "has dtype float64; the space says"),
    "bounds": (host_step(lambda self, o, *rest: (o + np.float32([9, 0]), *rest)), r"observation\[0\] is"),
    "reward's shape": (host_step(lambda self, o, r, *rest: (o, np.zeros(1), *rest)), r"the reward is ndarray of shape"),
    "reward": (host_step(lambda self, o, r, *rest: (o, np.nan, *rest)), "the reward is nan"),
    "flag": (host_step(lambda self, o, r, d, *rest: (o, r, int(d), *rest)), "`terminated` is int"),
    "old interface": (host_step(lambda self, o, r, d, t, i: (o, r, d or t, i)), "it returns a tuple of 4"),
    "final observation": (host_step(host_restart), "the final observation is missing"),
    "merged": (host_step(lambda self, o, r, d, t, i: (o, r, d or t, d or t, i)), "both terminated and truncated"),
    "time limit": (host_step(lambda self, o, r, d, t, i: (o, r, t, False, i)), "a time limit taken for the task's end"),
    "seed ignored": (
        host_step(lambda self, o, r, *rest: (o, r + np.random.rand(), *rest)),  # noqa: NPY002
        "the same seed and actions gave different results",
    ),
    "actions ignored": (
        type("Broken", (HostSound,), {"_push": lambda self, action: 0.3})(),
        "the lowest, middle and highest action lead to the same",
    ),
    "action box cut": (
        type("Broken", (HostSound,), {"_push": lambda self, action: float(np.clip(action, -1, 1))})(),
        "cut to",
    ),
}


@pytest.mark.parametrize("fault", HOST_BROKEN)
def test_each_fault_of_a_gymnasium_environment_is_said_in_a_sentence(fault):
    env, sentence = HOST_BROKEN[fault]
    report = check_env(env, seeds=4, steps=40)
    assert len(report.faults) == 1, str(report)
    assert re.search(sentence, str(report)), str(report)


@pytest.mark.parametrize("env", [HostSound(), HostSound, "gymnasium:CartPole-v1", "gymnasium:Pendulum-v1", "Taxi-v4"])
def test_sound_gymnasium_environments_give_no_fault(env):
    report = check_env(env, seeds=3, steps=220)
    assert report.faults == (), str(report)


def test_a_space_that_is_refused_is_a_fault():
    env = type("Odd", (HostSound,), {})()
    env.action_space = spaces.MultiDiscrete([2, 2])
    assert "MultiDiscrete" in str(check_env(env))
