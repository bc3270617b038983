import importlib.util
import subprocess
import sys
import types

import gymnasium
import jax
import jax.numpy as jnp
import pytest

from ajax.core.errors import EnvironmentFault, SpaceError, UnknownName
from ajax.core.spaces import Box, Discrete
from ajax.environments.base import Env, Step
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.environments.gymnax import GymnaxEnv
from ajax.environments.registry import make, names
from ajax.environments.user import Static
from ajax.environments.wrappers import TimeLimit
from tests.environments.identity_env import IdentityEnv


class Plain:
    """A user's environment that is no pytree: one number that counts the steps."""

    observation_space = Box(0.0, 9.0, (1,))
    action_space = Discrete(2)

    def reset(self, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, key, state, action):
        state = state + 1
        obs = jnp.full(1, state, jnp.float32)
        return state, Step(obs, jnp.float32(0), state >= 9, jnp.zeros((), bool))


def step_with(**changes):
    class Changed(Plain):
        def step(self, key, state, action):
            state, step = super().step(key, state, action)
            return state, step.replace(**changes)

    return Changed


def test_names_choose_the_suite():
    assert isinstance(make("CartPole-v1"), GymnaxEnv)
    assert isinstance(make("gymnax:CartPole-v1"), GymnaxEnv)
    assert isinstance(make("gymnasium:CartPole-v1"), GymnasiumEnv)
    assert isinstance(make("Taxi-v4"), GymnasiumEnv)  # gymnax has no such environment


def test_a_class_is_found_in_a_module_and_in_a_file(tmp_path):
    assert make("tests.environments.identity_env:IdentityEnv") == IdentityEnv()
    file = tmp_path / "mine.py"
    file.write_text("from tests.environments.identity_env import IdentityEnv\nclass Mine(IdentityEnv): pass\n")
    assert type(make(f"{file}:Mine")).__name__ == "Mine" or isinstance(make(f"{file}:Mine"), Static)


def test_objects_and_classes_are_taken_as_they_are_or_held():
    assert make(IdentityEnv()) == IdentityEnv()
    assert make(IdentityEnv) == IdentityEnv()
    held = make(Plain())
    assert isinstance(held, Static) and isinstance(held, Env)
    assert jax.tree.leaves(held) == []
    assert make(held) is held
    state, obs = jax.jit(lambda env, key: env.reset(key))(held, jax.random.key(0))
    assert obs.shape == (1,) and int(state) == 0


def test_environments_of_other_libraries_are_taken_as_objects():
    import gymnax

    assert make(gymnax.make("Pendulum-v1")[0]).time_limit == 200
    assert isinstance(make(gymnasium.make("CartPole-v1")), GymnasiumEnv)
    assert isinstance(make(lambda: gymnasium.make("CartPole-v1")), GymnasiumEnv)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CartPole-v2", "Did you mean 'CartPole-v1'"),
        ("gymnax:Pendulm-v1", "Did you mean 'Pendulum-v1'"),
        ("gymnasium:Pendulm-v1", "Did you mean 'Pendulum-v1'"),
        ("brax:hoper", "Did you mean 'hopper'|pip install"),
        ("nowhere:Env", "nowhere can't be imported"),
        ("no/such/file.py:Env", "can't be imported"),
        ("tests.environments.identity_env:Identity", "Did you mean 'IdentityEnv'"),
    ],
)
def test_unknown_names_say_what_to_do(name, hint):
    with pytest.raises(UnknownName, match=hint):
        make(name)


def test_a_file_that_fails_leaves_no_half_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(UnknownName, match=r"halfway\.py can't be imported: No module named 'nothing_of_this_name'"):
        make(f"{tmp_path}/halfway.py:Env")
    with pytest.raises(UnknownName, match="halfway can't be imported"):
        make("halfway:Env")
    known = types.ModuleType("halfway")
    monkeypatch.setitem(sys.modules, "halfway", known)
    with pytest.raises(UnknownName, match="can't be imported"):
        make(f"{tmp_path}/halfway.py:Env")
    assert sys.modules["halfway"] is known


def test_a_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnknownName, match=r"pip install 'ajax-agents\[brax\]'"):
        make("brax:ant")
    suites = {suite.name: suite for suite in names()}
    assert "ajax-agents[playground]" in suites["playground"].missing
    assert "CartPole-v1" in suites["gymnax"].environments
    assert "Taxi-v4" in suites["gymnasium"].environments
    assert "ant" in suites["brax"].environments


def test_a_wrong_name_is_refused_without_importing_the_suites():
    code = (
        "import sys\nfrom ajax.environments.registry import make\n"
        "try: make('CartPole-v2')\nexcept LookupError: pass\n"
        "loaded = {'gymnax', 'brax', 'mujoco_playground', 'matplotlib'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (step_with(obs=jnp.zeros(2)), r"observation of `step` has shape \(2,\); it must have \(1,\)"),
        (step_with(obs=jnp.zeros(1, jnp.int32)), "observation of `step` has dtype int32"),
        (step_with(obs={"a": jnp.zeros(1)}), "observation of `step` is dict; it must be one array"),
        (step_with(reward=jnp.zeros(1)), r"the reward has shape \(1,\)"),
        (step_with(terminated=jnp.float32(0)), "`terminated` has dtype float32; it must have bool"),
        (step_with(truncated=jnp.int32(0)), "`truncated` has dtype int32; it must have bool"),
    ],
)
def test_what_breaks_its_own_declaration_is_refused_when_made(env, sentence):
    with pytest.raises(EnvironmentFault, match=sentence):
        make(env())


def test_a_state_that_changes_its_dtype_is_refused():
    class Drifts(Plain):
        def step(self, key, state, action):
            state, step = super().step(key, state, action)
            return state.astype(jnp.float32), step

    with pytest.raises(EnvironmentFault, match="`step` changes the state's"):
        make(Drifts())


def test_wrong_returns_and_missing_members_are_named():
    class Old(Plain):
        def step(self, key, state, action):
            return state, jnp.zeros(1), 0.0, False

    with pytest.raises(EnvironmentFault, match="`step` returns tuple of 4; it must return"):
        make(Old())

    class Empty:
        action_space = Discrete(2)

        def step(self, key, state, action): ...

    with pytest.raises(EnvironmentFault, match="Empty has no observation_space and no reset"):
        make(Empty())


def test_an_object_that_can_not_be_hashed_is_refused():
    class Unhashable(Plain):
        def __eq__(self, other):
            return True

    with pytest.raises(EnvironmentFault, match="can't be hashed"):
        make(Unhashable())


def test_a_wrapper_around_an_object_that_is_no_pytree_is_refused():
    with pytest.raises(EnvironmentFault, match=r"holds Plain, which isn't.*`as_env` first"):
        make(TimeLimit(Plain(), 3))


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"observation_space": "anything"}, "observation_space is 'anything'"),
        ({"action_space": Box(shape=(1,))}, "infinite bounds"),
        ({"action_space": Box(1.0, 1.0, (1,))}, "isn't above its lower bound"),
    ],
)
def test_spaces_that_agents_can_not_use_are_refused(members, sentence):
    with pytest.raises(SpaceError, match=sentence):
        make(type("Odd", (Plain,), members)())
