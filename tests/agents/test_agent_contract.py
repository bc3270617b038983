"""What every exported agent owes, whatever it computes: its spaces, its runs, its keys, its box, its environment."""

from __future__ import annotations

import functools
import json

import jax
import numpy as np
import pytest

from ajax.agents import MODULES, get
from ajax.core.errors import SpaceError
from ajax.core.keys import seed_key
from ajax.core.records import Spec
from ajax.training.chunk import begin
from ajax.training.driver import make_task
from ajax.training.normalise import Normalize
from ajax.training.plan import Plan
from ajax.training.run import Task
from tests.agents.contract import HIGH, LOW, NORMALIZED, ONE_KIND, SUBJECTS, Witness, rows, tiny, witnessed
from tests.environments.identity_env import TRUNCATES_AT

KINDS = ("discrete", "continuous")


def test_every_agent_is_a_subject():
    assert {name for name, _ in SUBJECTS} == set(MODULES)


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in MODULES for kind in KINDS])
def test_it_acts_in_its_spaces_and_refuses_the_other(name, kind):
    agent, env = get(name)(), Witness(kind)
    if kind not in agent.acts:
        with pytest.raises(SpaceError, match=f"^{name} needs {'continuous' if kind == 'discrete' else 'discrete'}"):
            agent.check_spaces(Spec(env.observation_space, env.action_space))
        return
    run, _ = jax.eval_shape(begin, agent, Task(env, n_envs=3), seed_key(0))
    assert run.obs.shape == (3, 4)
    assert run.own == (), "a default run keeps an extension's state"


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_extensions_fold_once_an_update_in_every_seed_and_measure_in_every_evaluation(name, kind):
    result, told = witnessed(name, kind)
    kept = [result.run(lane).own[0] for lane in range(2)]
    n = int(kept[0].count)
    assert n >= 16 and [(int(k.count), int(k.total)) for k in kept] == [(n, n * (n - 1) // 2)] * 2
    assert told[-1].update == n - 1
    measured = result.metrics["evaluation/kept"]  # (seeds, evaluations)
    assert measured.shape == (2, 2) and (measured[:, 0] > 0).all() and (measured[:, 1] == n).all()


@pytest.mark.parametrize(("name", "kind"), ONE_KIND)
def test_a_runs_configuration_holds_no_environment_and_comes_back(name, kind):
    plan = witnessed(name, kind, **NORMALIZED)[0].session.plan
    written = json.loads(json.dumps(plan.to_json()))
    assert written["env_id"] is None and written["env_name"] == "Witness"
    assert Plan.from_json(written, agent=plan.agents[0]) == plan


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_evaluations_draw_apart_from_training_and_from_each_other(name, kind):
    """The fraction of a return is what its episode drew at its start."""
    result, told = witnessed(name, kind)
    session = result.session
    trained = set(np.round(rows(told).now.obs[:, 2], 4))
    drawn = [np.round(session.lanes.evaluate(tick, 16).returns % 1, 4) for tick in (0, 1)]
    one, other = (set(returns.flat) for returns in drawn)
    assert len(one) == len(other) == 32, "two episodes of an evaluation start alike"
    # numbers rounded to 4 digits may meet by chance
    assert len(one & other) <= 2 and len((one | other) & trained) <= 2


@pytest.mark.parametrize(("name", "kind"), [subject for subject in SUBJECTS if subject[1] == "continuous"])
def test_it_acts_on_the_whole_box(name, kind):
    seen = rows(witnessed(name, kind)[1])
    executed = seen.next.obs[:, 3]
    assert LOW <= executed.min() < -1.0 and 1.0 < executed.max() <= HIGH
    greedy = witnessed(name, kind)[0].act(seen.now.obs)
    assert (greedy >= LOW).all() and (greedy <= HIGH).all() and np.ptp(greedy) > 0


@functools.cache
def optioned(name: str, kind: str):
    """The environment that an agent is trained on with a time limit of 1 and every action taken thrice."""
    options = {"normalize": Normalize(), "on_nan": "stop", "episode_length": 1, "action_repeat": 3}
    agent = tiny(name)
    plan = Plan(
        agents=(agent,), seeds=(0,), labels=("",), env_id=None, env_name="", steps=10_000, horizon=10_000,
        evaluations=1, episodes=1, limit=1, **options,
    )  # fmt: skip
    return make_task(plan, Witness(kind)).env


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_episode_length_and_action_repeat_reach_the_environment(name, kind):
    env = optioned(name, kind)
    for seed in range(4):
        state, (_, c, u, _) = env.reset(seed_key(seed))
        _, step = env.step(seed_key(0), state, env.action_space.zeros())
        assert float(step.obs[0]) == 3.0
        np.testing.assert_allclose(step.reward, 30.0 * c + u, rtol=1e-6)
        assert bool(step.terminated) == (c > 0) and bool(step.truncated)
    assert env.time_limit == 1 < TRUNCATES_AT
