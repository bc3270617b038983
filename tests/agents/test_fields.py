"""Every field of every agent reaches the code that it is meant for, and moves nothing that it must not.

An agent that is exported without a row here fails; so does a field that no row knows how to change.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents import MODULES, get
from ajax.agents.apg import APG
from ajax.agents.apo import APO
from ajax.agents.asac import ASAC
from ajax.agents.avg import AVG
from ajax.agents.crossq import CrossQ
from ajax.agents.dagger import DAgger
from ajax.agents.dqn import DQN
from ajax.agents.iql import IQL
from ajax.agents.ppo import PPO
from ajax.agents.pqn import PQN
from ajax.agents.redq import REDQ
from ajax.agents.rvisac import RVISAC
from ajax.agents.sac import SAC
from ajax.agents.td3 import TD3
from ajax.agents.udrl import UDRL
from ajax.core.config import assign, paths
from ajax.core.records import Batch, Net, Spec
from ajax.core.schedules import Cosine
from ajax.core.spaces import Discrete
from tests.agents.build import KEY, SMALL, clock, equal, first, random_batch, replayed, spec, step
from tests.extensions.builders import Steady

BOX, DISCRETE = spec(3, 2), spec(3, Discrete(3))

SUBJECTS: dict[str, tuple[Any, Spec]] = {
    # with every option set, so that each has something to act on
    "APG": (APG(gamma=0.9, max_grad_norm=0.1, torso=SMALL), BOX),
    "APO": (APO(learning_rate=0.05, max_grad_norm=0.1, torso=SMALL), BOX),
    "ASAC": (ASAC(target_entropy=-1.0, alpha=0.5, torso=SMALL), BOX),
    "AVG": (AVG(adam_b1=0.5, torso=SMALL), BOX),
    "CrossQ": (
        CrossQ(target_entropy=-1.0, alpha=0.5, policy_delay=2, renorm_warmup=1, torso=SMALL, critic_torso=SMALL),
        BOX,
    ),
    "DAgger": (DAgger(expert=Steady((2,)), beta=0.5, torso=SMALL), BOX),
    "DQN": (DQN(max_grad_norm=0.01, epsilon=0.5, target_period=2, n_step=2, torso=SMALL), DISCRETE),
    "IQL": (IQL(actor_learning_rate=Cosine(start=3e-4, end=1e-4, fraction=0.5), max_weight=2.0, torso=SMALL), BOX),
    "PPO": (PPO(entropy_coef=0.01, learning_rate=0.05, torso=SMALL), BOX),
    "PQN": (PQN(max_grad_norm=0.01, epsilon=0.5, torso=SMALL), DISCRETE),
    "REDQ": (REDQ(target_entropy=-1.0, alpha=0.5, n_critics=3, policy_delay=2, torso=SMALL), BOX),
    "RVISAC": (RVISAC(target_entropy=-1.0, alpha=0.5, target_reset_rate=1e-6, torso=SMALL), BOX),
    "SAC": (SAC(target_entropy=-1.0, alpha=0.5, torso=SMALL), BOX),
    "TD3": (TD3(bc_alpha=2.5, torso=SMALL), BOX),
    "UDRL": (UDRL(torso=SMALL), BOX),
}

NEW_STRUCTURE: dict[str, Any] = {
    "APG.stochastic": False,
    "DQN.target_period": 3,
    "DQN.double": True,
    "DQN.dueling": True,
    "DQN.n_step": 3,
    "PPO.standardize_advantages": False,
    "CrossQ.renorm_warmup": 2,
    "REDQ.n_critics": 4,
    "REDQ.n_target_critics": 1,
    "policy_delay": 1,
    "torso.widths": (8, 9),
    "torso.activation": "silu",
    "torso.initializer": "orthogonal",
    "torso.layer_norm": True,
}
"""Another value of every field that is not a number."""

ELSEWHERE = (
    "replay.",
    "rollout.",
    *(f"{torso}.{part}" for torso in ("torso", "critic_torso") for part in ("cnn", "memory")),
)
"""Fields with tests of their own: the training loop's, and what networks read observations by."""
IN_STAGE = ("DAgger.expert", "DAgger.beta")
"""Those of the extensions that an agent brings."""


def exercise(agent: Any, spec: Spec, seed: int = 0) -> Any:
    """Everything that an agent computes: its first state, actions, and the states after two updates."""
    state = agent.init(spec, jax.random.key(seed))
    b, x = replayed(agent, spec), random_batch(spec).now
    moment = clock(step=50.0)
    action, extras = agent.act(state, x, KEY, moment, True)
    if agent.loop == "on_policy":
        b = prepared(agent, state, b.replace(action=action, extras=extras))
    reached = [state]
    for update in range(2):
        state, metrics, target = step(agent, state, b, clock(update, step=50.0), KEY)
        reached += [state, metrics, target]
    if agent.loop == "on_policy":
        reached.append(prepared(agent, state, b))  # a second rollout
    return reached, action


def prepared(agent: Any, state: Any, b: Batch) -> Batch:
    """A batch as a rollout of two environments, with what `prepare` adds; one row of it where one is all there is.

    Who learns through the environment is given one that pays the sum of an action's elements.
    """
    if agent.rollout.size == 1:
        return jax.tree.map(lambda x: x[1:2], b)
    rollout = jax.tree.map(lambda x: jnp.reshape(x, (-1, 2, *x.shape[1:])), b)
    if agent.through_env:
        worth = jax.grad(lambda reward: agent.objective(rollout.replace(reward=reward)))(rollout.reward)
        slope = worth[..., None] * jnp.ones_like(rollout.action)
        rollout = rollout.replace(extras=rollout.extras | {"slope": slope})
    rows = agent.prepare(state, rollout)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


run = jax.jit(exercise, static_argnums=1)


def fields(name: str) -> list[str]:
    """Every field of an agent by dotted path, but those that are tested elsewhere."""
    found = [path for path in paths(SUBJECTS[name][0]) if not path.startswith(ELSEWHERE)]
    return [path for path in found if f"{name}.{path}" not in IN_STAGE]


def numbers(name: str) -> list[str]:
    """The fields that are leaves of the configuration."""
    return [path for path in fields(name) if isinstance(paths(SUBJECTS[name][0])[path], float)]


def structure(name: str) -> list[str]:
    """The others."""
    return [path for path in fields(name) if path not in numbers(name)]


def test_every_agent_is_here():
    assert set(SUBJECTS) == set(MODULES)
    for name in MODULES:
        assert isinstance(SUBJECTS[name][0], get(name))
        assert not [path for path in fields(name) if paths(SUBJECTS[name][0])[path] is None], "an option is off"


@pytest.mark.parametrize(("name", "path"), [(name, path) for name in SUBJECTS for path in numbers(name)])
def test_a_number_changes_what_is_computed(name, path):
    agent, spec = SUBJECTS[name]
    value = paths(agent)[path]
    changed = assign(agent, {path: 0.5 * value})
    assert not equal(run(agent, spec), run(changed, spec))


@pytest.mark.parametrize(("name", "path"), [(name, path) for name in SUBJECTS for path in structure(name)])
def test_structure_changes_the_program(name, path):
    agent, spec = SUBJECTS[name]
    new = NEW_STRUCTURE.get(f"{name}.{path}", NEW_STRUCTURE.get(path.removeprefix("critic_")))
    assert new is not None and new != paths(agent)[path], f"{name}.{path} needs another value in NEW_STRUCTURE"
    trace = jax.make_jaxpr(exercise, static_argnums=1)
    assert str(trace(agent, spec)) != str(trace(assign(agent, {path: new}), spec))


def test_the_same_configuration_computes_the_same():
    agent, spec = SUBJECTS["TD3"]
    assert equal(run(agent, spec), run(dataclasses.replace(agent), spec))
    assert not equal(run(agent, spec, 0), run(agent, spec, 1))


# What the first update (or, where policies wait, the first that moves the actor) must leave alone

MOVES: list[tuple[str, str, int, set[str]]] = [
    ("ASAC", "actor_learning_rate", 0, {"actor"}),
    ("ASAC", "alpha_learning_rate", 0, {"log_alpha"}),
    ("ASAC", "gain_rate", 0, {"critic", "target", "gain", "reset_cost"}),
    ("ASAC", "tau", 0, {"target"}),
    ("CrossQ", "learning_rate", 0, {"critic"}),
    ("CrossQ", "gamma", 0, {"critic"}),
    ("CrossQ", "actor_learning_rate", 0, set()),
    ("CrossQ", "actor_learning_rate", 1, {"actor"}),
    ("CrossQ", "alpha_learning_rate", 1, {"log_alpha"}),
    ("CrossQ", "target_entropy", 1, {"log_alpha"}),
    ("CrossQ", "adam_b1", 0, {"critic"}),
    ("DQN", "learning_rate", 0, {"q"}),
    ("DQN", "gamma", 0, {"q"}),
    ("DQN", "epsilon", 0, set()),
    ("IQL", "learning_rate", 0, {"critic", "target"}),
    ("IQL", "gamma", 0, {"critic", "target"}),
    ("IQL", "tau", 0, {"target"}),
    ("IQL", "value_learning_rate", 0, {"value", "actor", "critic", "target"}),
    ("IQL", "expectile", 0, {"value", "actor", "critic", "target"}),
    ("IQL", "actor_learning_rate.start", 0, {"actor"}),
    ("IQL", "beta", 0, {"actor"}),
    ("IQL", "max_weight", 0, {"actor"}),
    ("REDQ", "learning_rate", 0, {"critic", "target"}),
    ("REDQ", "gamma", 0, {"critic", "target"}),
    ("REDQ", "tau", 0, {"target"}),
    ("REDQ", "actor_learning_rate", 0, set()),
    ("REDQ", "actor_learning_rate", 1, {"actor"}),
    ("REDQ", "alpha_learning_rate", 0, set()),
    ("REDQ", "alpha_learning_rate", 1, {"log_alpha"}),
    ("REDQ", "target_entropy", 1, {"log_alpha"}),
    ("RVISAC", "learning_rate", 0, {"critic", "target", "reset_critic", "reset_target", "actor"}),
    ("RVISAC", "actor_learning_rate", 0, {"actor"}),
    ("RVISAC", "alpha_learning_rate", 0, {"log_alpha"}),
    ("RVISAC", "reference_rate", 0, {"gain", "reset_rate", "reset_cost"}),
    ("RVISAC", "reference_scale", 0, {"gain", "reset_rate", "reset_cost"}),
    ("RVISAC", "target_reset_rate", 0, {"reset_cost"}),
    ("RVISAC", "reset_cost_learning_rate", 0, {"reset_cost"}),
    ("RVISAC", "tau", 0, {"target", "reset_target"}),
    ("SAC", "actor_learning_rate", 0, {"actor"}),
    ("SAC", "alpha_learning_rate", 0, {"log_alpha"}),
    ("SAC", "target_entropy", 0, {"log_alpha"}),
    ("SAC", "tau", 0, {"target"}),
    ("TD3", "learning_rate", 0, {"critic"}),
    ("TD3", "actor_learning_rate", 0, set()),
    ("TD3", "actor_learning_rate", 1, {"actor", "target_actor"}),
    ("TD3", "bc_alpha", 1, {"actor", "target_actor"}),
    ("TD3", "tau", 0, set()),
    ("TD3", "tau", 1, {"target_actor", "target_critic"}),
    ("TD3", "target_noise", 0, {"critic"}),
    ("TD3", "exploration_noise", 1, set()),
]


@pytest.mark.parametrize(("name", "path", "update", "moved"), MOVES)
def test_a_number_moves_only_its_own_networks(name, path, update, moved):
    agent, spec = SUBJECTS[name]
    agent = dataclasses.replace(agent, n_step=1, target_period=100) if name == "DQN" else agent
    state, b = first(agent, spec), replayed(agent, spec)
    changed = assign(agent, {path: 0.5 * paths(agent)[path]})
    one, other = (step(a, state, b, clock(update), KEY)[0] for a in (agent, changed))
    nets = {f.name: equal(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)}
    assert {net for net, same in nets.items() if not same} == moved


STEPS_OF: dict[tuple[str, str], set[str]] = {
    ("APG", "learning_rate"): {"actor"},
    ("APO", "learning_rate"): {"net"},
    ("ASAC", "learning_rate"): {"critic"},
    ("ASAC", "actor_learning_rate"): {"actor"},
    ("ASAC", "alpha_learning_rate"): {"log_alpha"},
    ("AVG", "learning_rate"): {"critic"},
    ("AVG", "actor_learning_rate"): {"actor"},
    ("CrossQ", "learning_rate"): {"critic"},
    ("CrossQ", "actor_learning_rate"): {"actor"},
    ("CrossQ", "alpha_learning_rate"): {"log_alpha"},
    ("DAgger", "learning_rate"): {"actor"},
    ("DQN", "learning_rate"): {"q"},
    ("IQL", "learning_rate"): {"critic"},
    ("IQL", "value_learning_rate"): {"value"},
    ("IQL", "actor_learning_rate.start"): {"actor"},
    ("PPO", "learning_rate"): {"net"},
    ("PQN", "learning_rate"): {"q"},
    ("REDQ", "learning_rate"): {"critic"},
    ("REDQ", "actor_learning_rate"): {"actor"},
    ("REDQ", "alpha_learning_rate"): {"log_alpha"},
    ("RVISAC", "learning_rate"): {"critic", "reset_critic"},
    ("RVISAC", "actor_learning_rate"): {"actor"},
    ("RVISAC", "alpha_learning_rate"): {"log_alpha"},
    ("RVISAC", "reset_cost_learning_rate"): {"reset_cost"},
    ("SAC", "learning_rate"): {"critic"},
    ("SAC", "actor_learning_rate"): {"actor"},
    ("SAC", "alpha_learning_rate"): {"log_alpha"},
    ("TD3", "learning_rate"): {"critic"},
    ("TD3", "actor_learning_rate"): {"actor"},
    ("UDRL", "learning_rate"): {"behavior"},
}
"""Every learning rate, and the networks whose step it sets."""


@jax.jit
def lengths(agent: Any, state: Any, b: Batch) -> dict[str, jax.Array]:
    """How far the first update that moves them takes each network that has an optimizer, by name."""
    after, _, _ = step(agent, state, b, clock(), KEY)
    nets = {f.name: (getattr(state, f.name), getattr(after, f.name)) for f in dataclasses.fields(state)}
    trained = {name: pair for name, pair in nets.items() if isinstance(pair[0], Net) and jax.tree.leaves(pair[0].opt)}
    moves = {name: jax.tree.map(jnp.subtract, new.params, old.params) for name, (old, new) in trained.items()}
    return {name: jnp.sqrt(sum(jnp.square(x).sum() for x in jax.tree.leaves(move))) for name, move in moves.items()}


def test_every_learning_rate_says_whose_it_is():
    ends = ("learning_rate", "learning_rate.start")
    rates = {(name, path) for name in SUBJECTS for path in numbers(name) if path.endswith(ends)}
    assert set(STEPS_OF) == rates


@pytest.mark.parametrize(("name", "path"), STEPS_OF)
def test_a_learning_rate_sets_the_steps_of_its_own_networks_alone(name, path):
    """Half of it halves their first step by Adam, and hardly touches the others', which only see where those went."""
    agent, spec = SUBJECTS[name]
    agent = assign(agent, {path: 1 for path in ("policy_delay", "n_step") if path in paths(agent)})
    state, b = first(agent, spec), replayed(agent, spec)
    if agent.loop == "on_policy":
        action, extras = agent.act(state, b.now, KEY, clock(), True)
        b = prepared(agent, state, b.replace(action=action, extras=extras))
    whole, half = (lengths(a, state, b) for a in (agent, assign(agent, {path: 0.5 * paths(agent)[path]})))
    ratios = {net: float(half[net] / whole[net]) for net in whole}
    own = {net for net, ratio in ratios.items() if abs(ratio - 0.5) < 0.01}
    assert own == STEPS_OF[name, path]
    assert all(abs(ratio - 1.0) < 0.1 for net, ratio in ratios.items() if net not in own)


@pytest.mark.parametrize("name", SUBJECTS)
def test_an_update_is_pure_and_finite(name):
    agent, spec = SUBJECTS[name]
    (one, _), (other, _) = run(agent, spec), run(agent, spec)
    assert equal(one, other)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(one))
