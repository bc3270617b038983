"""Configurations: what they accept, how they refuse, and that numbers are leaves and structure is static."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.dqn import DQN
from ajax.agents.ppo import PPO
from ajax.agents.sac import SAC
from ajax.agents.td3 import TD3
from ajax.buffers.replay import Replay
from ajax.buffers.rollout import Rollout
from ajax.core.config import assign, by_name, config, is_config, members, paths, resolve, setting
from ajax.core.errors import ConfigError, UnknownName
from ajax.core.schedules import Linear
from ajax.networks.torsos import Torso


@config
class Inner:
    """A family of options."""

    size: int = setting(default=3, low=1, help="how many")


@config
class Toy:
    """One field of every kind."""

    rate: float = setting(default=0.5, within=(0, 1), help="a share")
    limit: float | None = setting(default=None, positive=True, help="a limit, or none")
    count: int = setting(default=4, low=1, help="a count")
    flag: bool = setting(default=False, help="a switch")
    name: str = setting(default="relu", choices=("relu", "tanh"), help="a name")
    widths: tuple[int, ...] = setting(default=(8, 8), help="a shape")
    inner: Inner = setting(default=Inner(), help="more options")

    def check(self) -> None:
        """A rule over two fields."""
        if self.flag and self.count < 2:
            raise ConfigError(f"Toy(flag=True, count={self.count}): count must be at least 2.")


def test_numbers_are_leaves_and_structure_is_static():
    leaves, structure = jax.tree.flatten(Toy(rate=0.25, limit=2.0))
    assert leaves == [0.25, 2.0]
    assert structure == jax.tree.structure(Toy(rate=0.75, limit=3.0))
    for other in (Toy(limit=None), Toy(limit=2.0, count=5), Toy(limit=2.0, inner=Inner(size=4))):
        assert structure != jax.tree.structure(other)


def test_leaves_are_named():
    (path, _), *_ = jax.tree_util.tree_flatten_with_path(Toy())[0]
    assert jax.tree_util.keystr(path) == ".rate"


def test_a_new_number_does_not_recompile_and_new_structure_does():
    traced = []

    @jax.jit
    def double(toy: Toy) -> jax.Array:
        traced.append(toy.count)
        return 2.0 * toy.rate * toy.count

    assert double(Toy(rate=0.25)) == 2.0
    assert double(Toy(rate=0.5)) == 4.0
    assert traced == [4]
    assert double(Toy(rate=0.5, count=8)) == 8.0
    assert traced == [4, 8]


def test_a_batch_of_values_is_one_vmap():
    toys = dataclasses.replace(Toy(), rate=jnp.array([0.1, 0.2]))
    np.testing.assert_allclose(jax.vmap(lambda toy: toy.rate * toy.count)(toys), [0.4, 0.8], rtol=1e-6)


def test_configurations_compare_and_hash_by_value():
    assert Toy(rate=0.25) == Toy(rate=0.25) != Toy(rate=0.75)
    assert len({Inner(size=2), Inner(size=2), Inner(size=3)}) == 2


def test_configurations_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Toy().rate = 0.1  # type: ignore[misc]


def test_numpy_and_whole_numbers_become_plain_numbers():
    toy = Toy(rate=np.float32(0.25), count=np.int64(5))
    assert type(toy.rate) is float and toy.rate == 0.25
    assert type(toy.count) is int and toy.count == 5
    assert type(Toy(rate=1).rate) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rat": 0.5}, r"Toy has no field 'rat'. Did you mean 'rate'\? Its fields: rate, limit, count"),
        ({"rate": "half"}, r"Toy\(rate='half'\): rate must be a number, not str"),
        ({"rate": None}, r"rate must be a number, not NoneType"),
        ({"rate": True}, r"rate must be a number, not bool"),
        ({"rate": 1.5}, r"Toy\(rate=1.5\): rate must be within \[0, 1\]. A share"),
        ({"rate": -0.1}, r"rate must be within \[0, 1\]"),
        ({"rate": math.nan}, r"rate must be finite"),
        ({"limit": math.inf}, r"limit must be finite"),
        ({"limit": 0.0}, r"limit must be greater than 0"),
        ({"limit": "none"}, r"limit must be a number or None, not str"),
        ({"count": 0}, r"count must be at least 1"),
        ({"count": -3}, r"count must be at least 1"),
        ({"count": 2.0}, r"count must be a whole number, not float"),
        ({"count": True}, r"count must be a whole number, not bool"),
        ({"flag": 1}, r"flag must be True or False, not int"),
        ({"name": "rellu"}, r"name must be one of 'relu', 'tanh'. Did you mean 'relu'"),
        ({"widths": [8, 8]}, r"widths must be tuple"),
        ({"widths": (8, 0.5)}, r"widths must be tuple"),
        ({"inner": {"size": 3}}, r"inner must be Inner, not dict"),
        ({"flag": True, "count": 1}, r"count must be at least 2"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed(values, message):
    with pytest.raises(ConfigError, match=message):
        Toy(**values)


def test_a_missing_value_is_named():
    with pytest.raises(ConfigError, match=r"Linear needs end: value once the fraction of the run is over"):
        Linear(start=1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DQN(gama=0.9), r"DQN has no field 'gama'. Did you mean 'gamma'"),
        (lambda: DQN(gamma=1.01), r"gamma must be within \[0, 1\]"),
        (lambda: PPO(gamma=-0.01), r"gamma must be within \[0, 1\]"),
        (lambda: PPO(learning_rate=math.nan), r"learning_rate must be finite"),
        (lambda: SAC(learning_rate=math.inf), r"learning_rate must be finite"),
        (lambda: TD3(learning_rate=0.0), r"learning_rate must be greater than 0"),
        (lambda: TD3(learning_rate=-1e-3), r"learning_rate must be greater than 0"),
        (lambda: TD3(policy_delay=0), r"policy_delay must be at least 1"),
        (lambda: TD3(bc_alpha=-2.5), r"bc_alpha must be greater than 0"),
        (lambda: SAC(alpha=0.0), r"alpha must be greater than 0"),
        (lambda: DQN(target_period=-1), r"target_period must be at least 1"),
        (lambda: DQN(n_step=0), r"n_step must be at least 1"),
        (lambda: DQN(epsilon=1.5), r"epsilon must be within \[0, 1\]"),
        (lambda: DQN(epsilon=Linear(start=5.0, end=0.1)), r"epsilon must be within \[0, 1\]"),
        (lambda: DQN(epsilon=Linear(start=1.0, end=-0.1)), r"epsilon must be within \[0, 1\]"),
        (lambda: PPO(learning_rate=Linear(start=-3e-4, end=0.0)), r"learning_rate must be at least 0"),
        (lambda: Linear(start=1.0, end=0.0, fraction=0.0), r"fraction must be within \(0, 1\]"),
        (lambda: Linear(start=math.nan, end=0.0), r"start must be finite"),
        (lambda: DQN(replay=Replay(capacity=3), n_step=4), r"batch can't be larger|n_step=4"),
        (lambda: DQN(replay=Replay(capacity=64, batch_size=32, n_envs=8), n_step=9), r"fewer than one window"),
        (lambda: Replay(batch_size=101, capacity=100), r"batch_size=101, capacity=100"),
        (lambda: Replay(capacity=10, batch_size=4, n_envs=4, steps=3), r"one round collects, 12 transitions"),
        (lambda: Replay(n_envs=0), r"n_envs must be at least 1"),
        (lambda: Replay(warmup=-1), r"warmup must be at least 0"),
        (
            lambda: Rollout(n_envs=2, n_steps=10, n_minibatches=3),
            r"3 minibatches do not .* the 20 .* near it: 1, 2, 4",
        ),
        (lambda: Rollout(n_epochs=0), r"n_epochs must be at least 1"),
        (lambda: Torso(widths=(64, 0)), r"every width must be at least 1"),
        (lambda: Torso(activation="rleu"), r"Did you mean 'relu'"),
    ],
)
def test_agents_refuse_bad_values_when_built(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_a_rate_may_be_annealed_to_the_bound_itself():
    assert PPO(learning_rate=Linear(start=3e-4, end=0.0)).learning_rate.end == 0.0


def test_rebuilding_does_not_validate_tracers():
    out = jax.jit(lambda agent: agent)(PPO(gamma=0.5))
    assert isinstance(out, PPO) and float(out.gamma) == 0.5


def test_paths_lists_nested_fields():
    found = paths(DQN(epsilon=0.2))
    assert found["epsilon"] == 0.2 and found["replay.batch_size"] == 32 and found["torso.widths"] == (256, 256)
    assert paths(DQN())["epsilon.start"] == 1.0


def test_resolve_finds_the_one_field_of_a_name():
    assert resolve(DQN(), "gamma") == "gamma"
    assert resolve(DQN(), "batch_size") == "replay.batch_size"
    assert resolve(DQN(), "replay.batch_size") == "replay.batch_size"
    assert resolve(DQN(), "replay") == "replay"


def test_resolve_refuses_unknown_and_ambiguous_names():
    with pytest.raises(UnknownName, match=r"DQN has no field 'gama'. Did you mean 'gamma'\? Its fields: gamma"):
        resolve(DQN(), "gama")
    agent = PPO(learning_rate=Linear(start=1e-3, end=0.0), clip=Linear(start=0.2, end=0.1))
    with pytest.raises(UnknownName, match=r"'start' is ambiguous. Give one of clip.start, learning_rate.start"):
        resolve(agent, "start")


def test_assign_replaces_by_name_and_validates():
    agent = assign(DQN(), {"gamma": 0.5, "batch_size": 8, "replay.warmup": 10})
    assert (agent.gamma, agent.replay.batch_size, agent.replay.warmup) == (0.5, 8, 10)
    assert DQN().replay.batch_size == 32
    with pytest.raises(ConfigError, match="batch_size must be at least 1"):
        assign(DQN(), {"batch_size": 0})


def test_by_name_and_is_config():
    assert by_name("DQN") is DQN and by_name("Linear") is Linear
    with pytest.raises(UnknownName, match=r"unknown configuration 'DNQ'. Did you mean 'DQN'"):
        by_name("DNQ")
    assert is_config(Toy) and is_config(Toy()) and not is_config(dict) and not is_config(0.5)


def test_members_of_a_union():
    assert members(float | None) == (float, type(None)) and members(int) == (int,)


def test_a_field_without_a_rule_is_refused_when_its_class_is_made():
    with pytest.raises(ConfigError, match=r"Bare.by: declare it as by = setting\(default=..., help=...\)"):

        @config
        class Bare:
            by: float = 0.1
