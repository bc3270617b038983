"""What every agent owes an extension in every phase that it folds: the batch, a key of its own, the target, the net."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ajax.agents import get
from ajax.core.config import assign, config, paths, setting
from ajax.core.hooks import PHASE_BATCH_KEYS, Extension, Hooks
from ajax.core.records import Net
from tests.agents.build import KEY, clock, replayed
from tests.agents.contract import SUBJECTS
from tests.agents.test_fields import SUBJECTS as WITH_SPEC
from tests.agents.test_fields import prepared
from tests.extensions.watch import TARGET, folded, watched

FAST = {get(name).loop: (name, kind) for name, kind in reversed(SUBJECTS)}.values()
RUNS = [
    pytest.param(name, kind, marks=() if (name, kind) in FAST else pytest.mark.slow)
    for name, kind in SUBJECTS
    if kind == get(name).acts[-1] or (name, kind) in FAST
]
"""Every agent; the first of each loop in the fast tier."""

PARTS = ("now", "action", "reward", "terminated", "truncated", "next")


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_every_phase_that_is_folded_is_called(name, kind):
    _, calls, _ = watched(name, kind)
    called = {(call.who, call.phase) for call in calls if call.who != "agent"}
    assert called == {(who, phase) for who in "01" for phase in folded(get(name)())}


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_each_batch_holds_what_is_documented(name, kind):
    _, _, parts = watched(name, kind)
    for phase, there in parts.items():
        assert there == set(PARTS) & set(PHASE_BATCH_KEYS[phase]), phase


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_each_fold_has_a_key_of_its_own_which_the_agent_never_draws_on(name, kind):
    """No key serves two extensions, phases or updates, nor an extension and the agent."""
    _, calls, _ = watched(name, kind)
    users = defaultdict(set)
    for call in calls:
        users[call.key].add((call.who, call.phase, call.update))
    shared = {tuple(sorted(who)) for who in users.values() if len(who) > 1}
    assert not {who for who in shared if any(user[0] != "agent" for user in who)}


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_the_critics_loss_is_shown_the_target_that_on_target_returned(name, kind):
    _, calls, _ = watched(name, kind)
    shown = {call.target for call in calls if call.phase in ("critic_loss", "post_update")}
    regresses = "on_target" in folded(get(name)())
    assert shown == {TARGET} if regresses else all(np.isnan(target) for target in shown)  # NaN: there was none


@config
class Pull(Extension):
    """Adds the squared size of the differentiated network's parameters to one of the two losses."""

    weight: float = setting(help="weight")

    def size(self, net: Net) -> jax.Array:
        return self.weight * sum(jnp.square(x).sum() for x in jax.tree.leaves(net.params))


@config
class PullCritic(Pull):
    def critic_loss(self, view):
        return self.size(view.net)


@config
class PullActor(Pull):
    def actor_loss(self, view):
        return self.size(view.net)


class Named(Hooks):
    """The stack, and the network that each loss phase was given."""

    nets: dict[str, Net]

    def _views(self, phase, state, batch, net=None, target=None):
        if net is not None:
            self.nets = {**getattr(self, "nets", {}), phase: net}
        return super()._views(phase, state, batch, net, target)


def moments(agent: Any, spec: Any, extension: type[Pull]) -> tuple[list[dict[str, Any]], dict[str, set[str]]]:
    """Each network's parameters, and Adam's first moment of it after one update with the term and without; and what
    each loss was given."""
    named: dict[str, set[str]] = {}

    @jax.jit
    def update(agent: Any, weight: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        state, b = agent.init(spec, jax.random.key(0)), replayed(agent, spec)
        if agent.loop == "on_policy":
            action, extras = agent.act(state, b.now, KEY, clock(), True)
            b = prepared(agent, state, b.replace(action=action, extras=extras))
        hooks = Named(agent, (extension(weight=weight),), ((),), clock(), KEY, spec)
        after, _ = agent.update(state, b, KEY, clock(), hooks)
        nets = {f.name: getattr(after, f.name) for f in dataclasses.fields(after)}
        trained = {name: net for name, net in nets.items() if isinstance(net, Net) and jax.tree.leaves(net.opt)}
        for phase, net in hooks.nets.items():
            named[phase] = {name for name in trained if trained[name].module == net.module}
        first = {name: getattr(state, name).params for name in trained}
        return first, {name: optax.tree.get(net.opt, "mu") for name, net in trained.items()}

    (params, with_term), (_, without) = update(agent, jnp.float32(1.0)), update(agent, jnp.float32(0.0))
    return [params, with_term, without], named


LOSSES = {"critic_loss": PullCritic, "actor_loss": PullActor}


@pytest.mark.parametrize("phase", LOSSES)
@pytest.mark.parametrize("name", sorted({name for name, _ in SUBJECTS}))
def test_a_loss_term_moves_the_network_it_names_and_that_one_only(name, phase):
    """Every step is made tiny, so that no network sees where another went: only gradients can differ."""
    if phase not in get(name).folds:
        return
    agent, spec = WITH_SPEC[name]
    still = {path: 1e-12 for path in paths(agent) if path.endswith("learning_rate")}
    once = {path: 1 for path in ("policy_delay", "n_step") if path in paths(agent)}
    limit = {path: 1e9 for path in paths(agent) if path.endswith("max_grad_norm")}
    agent = assign(agent, still | once | limit)
    (params, with_term, without), named = moments(agent, spec, LOSSES[phase])
    moved = {
        net
        for net in with_term
        if not all(
            np.allclose(a, b, rtol=1e-4, atol=1e-7)
            for a, b in zip(jax.tree.leaves(with_term[net]), jax.tree.leaves(without[net]), strict=True)
        )
    }
    assert moved == named[phase] and len(moved) == 1
    (net,) = moved
    added = jax.tree.map(lambda a, b, p: ((a - b) * p).sum(), with_term[net], without[net], params[net])
    assert sum(map(float, jax.tree.leaves(added))) > 0, "the term is subtracted"  # its gradient is twice the parameters
