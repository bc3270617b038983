import copy
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.errors import UnknownName
from ajax.core.spaces import Box, Discrete
from ajax.environments.gymnax import MODULES, GymnaxEnv

OFFLINE = [name for name in MODULES if name != "MNISTBandit-bsuite"]  # that one downloads its images


def run_python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_loading_one_environment_leaves_heavy_packages_out():
    run_python(
        "import sys\n"
        "from ajax.environments.gymnax import GymnaxEnv\n"
        "GymnaxEnv.of('CartPole-v1')\n"
        "heavy = {'seaborn', 'matplotlib', 'pandas', 'scipy.stats', 'gymnax.registration'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )


@pytest.mark.slow
def test_a_later_import_of_gymnax_gives_the_same_classes_and_every_attribute():
    run_python(
        "from ajax.environments.gymnax import GymnaxEnv\n"
        "env = GymnaxEnv.of('CartPole-v1')\n"
        "import gymnax\n"
        "assert type(gymnax.make('CartPole-v1')[0]) is type(env.task)\n"
        "assert gymnax.environments.classic_control.cartpole.CartPole is type(env.task)\n"
        "assert gymnax.environments.CartPole is type(env.task)\n"
        "assert gymnax.environments.spaces.Box and gymnax.environments.classic_control.Pendulum\n"
    )


@pytest.mark.slow
def test_an_earlier_import_of_gymnax_gives_the_same_classes_and_the_table_is_gymnaxs_own():
    run_python(
        "import gymnax\n"
        "from ajax.environments.gymnax import MODULES, GymnaxEnv\n"
        "assert type(GymnaxEnv.of('CartPole-v1').task) is type(gymnax.make('CartPole-v1')[0])\n"
        "assert set(MODULES) == set(gymnax.registered_envs), set(MODULES) ^ set(gymnax.registered_envs)\n"
        "from gymnax.registration import _registry\n"
        "for name, where in MODULES.items():\n"
        "    cls = _registry[name]\n"
        "    assert f'{cls.__module__}:{cls.__name__}' == 'gymnax.environments.' + where, name\n"
    )


@pytest.mark.parametrize("name", OFFLINE)
def test_every_environment_returns_what_it_declares_and_its_state_can_be_carried(name):
    env = GymnaxEnv.of(name)
    key = jax.eval_shape(lambda: jax.random.key(0))
    action = jax.eval_shape(lambda: env.action_space.zeros())
    with jax.numpy_rank_promotion("allow"):  # some of gymnax's own code relies on it
        state, obs = jax.eval_shape(lambda env, key: env.reset(key), env, key)
        next_state, step = jax.eval_shape(lambda env, key, s, a: env.step(key, s, a), env, key, state, action)
    for observation in (obs, step.obs):
        assert (observation.shape, observation.dtype) == (env.observation_space.shape, env.observation_space.dtype)
    assert (step.reward.shape, step.reward.dtype) == ((), jnp.float32)
    assert step.terminated.dtype == step.truncated.dtype == bool
    assert [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(state)] == [
        (x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(next_state)
    ]


def test_spaces_and_time_limit_of_known_tasks():
    cartpole, pendulum = GymnaxEnv.of("CartPole-v1"), GymnaxEnv.of("Pendulum-v1")
    assert cartpole.action_space == Discrete(2)
    assert cartpole.time_limit == 500
    assert cartpole.observation_space.low[1] == -np.inf  # float32's largest number stands for "no bound"
    assert pendulum.action_space == Box(-2.0, 2.0, (1,))
    assert pendulum.time_limit == 200


def test_pendulum_is_truncated_at_its_limit_and_never_reset():
    env = GymnaxEnv.of("Pendulum-v1")
    key = jax.random.key(0)
    state, _ = env.reset(key)

    def body(state, _):
        state, step = env.step(key, state, jnp.zeros(1))
        return state, step

    state, steps = jax.jit(lambda s: jax.lax.scan(body, s, None, 201))(state)
    assert np.flatnonzero(steps.truncated).tolist() == [199, 200]
    assert not steps.terminated.any()
    assert int(state.time) == 201


def test_cartpole_terminates_with_the_final_observation():
    env = GymnaxEnv.of("CartPole-v1")
    key = jax.random.key(1)
    state, _ = env.reset(key)
    push = jax.jit(lambda state: env.step(key, state, jnp.int32(1)))
    for _ in range(30):
        state, step = push(state)
        if step.terminated:
            break
    assert bool(step.terminated) and not bool(step.truncated)
    assert abs(float(step.obs[2])) > 12 * 2 * np.pi / 360
    assert float(step.reward) == 1.0


def test_parameters_are_arguments_and_the_environment_a_static_part():
    env = GymnaxEnv.of("CartPole-v1")
    traces = []

    @jax.jit
    def force(env, state):
        traces.append(1)
        return env.step(jax.random.key(0), state, jnp.int32(1))[1].obs[1]

    state, _ = env.reset(jax.random.key(0))
    weak = force(env, state)
    strong = force(env.replace(params=env.params.replace(force_mag=20.0)), state)
    assert float(strong) > float(weak)
    force(pickle.loads(pickle.dumps(env)), state)
    force(copy.deepcopy(env), state)
    assert len(traces) == 1
    assert jax.tree.structure(env) == jax.tree.structure(GymnaxEnv.of("CartPole-v1"))


def test_gradients_pass_through_an_environment_that_supports_them():
    env = GymnaxEnv.of("Pendulum-v1")
    state, _ = env.reset(jax.random.key(0))
    gradient = jax.grad(lambda a: env.step(jax.random.key(0), state, a)[1].obs[2])(jnp.zeros(1))
    assert float(gradient[0]) == pytest.approx(3.0 * 0.05)  # 3 / (m l^2) * dt


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'CartPole-v1'"):
        GymnaxEnv.of("Cartpole-v1")
