"""What can be probed: a class of one's own end to end, and an Ajax agent's readings."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.spaces import Box
from ajax.probing import Case, Estimator, Problem, Spec, ask, judge
from ajax.probing.subjects import AjaxSubject, ClassSubject, History, Subject, load_class, readings
from ajax.training.lanes import Lanes

FILE = Path(__file__).parent / "learners" / "numpy_q.py"
CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)
PROBLEM = Problem(CHAIN, Estimator(gamma=0.8))


def chain_case(subject: Subject, budget: int = 600) -> Case:
    def read(trained):
        q = trained.q(CHAIN.obs[:2])
        return np.stack([q[:, 0, 2], q[:, 1, 1]], 1)

    queries = (ask("Q(s0, a=2)", PROBLEM, lambda s: s.q[0, 2]), ask("Q(s1, a=1)", PROBLEM, lambda s: s.q[1, 1]))
    return Case("chain", queries, readings(subject, CHAIN, read), budget, (0.03, 0.03), f"{subject.name}, chain")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_is_not_read(number, monkeypatch):
    from ajax import DQN, Replay

    advance = Lanes.advance

    def interrupted(lanes, *args):
        signal.raise_signal(number)
        return advance(lanes, *args)

    monkeypatch.setattr(Lanes, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        AjaxSubject(DQN(replay=Replay(capacity=16, batch_size=4, warmup=8))).train(CHAIN, 120, [0])


def test_a_class_by_its_path_passes():
    assert judge(chain_case(load_class(f"{FILE}:QLearner"))).passed


def test_its_mistake_is_named():
    text = judge(chain_case(load_class(f"{FILE}:MeanLearner"))).text
    assert "MeanLearner, chain, Q(s0, a=2): 8 of 8 seeds read 0.4" in text
    assert "closest named mistake: mean instead of max in the bootstrap (0.40), 8 of 8 agree" in text


def test_trainings_are_kept():
    made = []

    class Counting:
        def __init__(self, env, seed):
            made.append(seed)

        def learn(self, steps):
            pass

        def v(self, obs):
            return np.zeros(len(obs))

    read = readings(ClassSubject(Counting, "Counting"), CHAIN, lambda trained: trained.v(CHAIN.obs[:1]))
    assert read(10, [0, 1]).shape == (2, 1)
    read(10, [0, 1])
    assert made == [0, 1]
    read(20, [0, 1])
    assert made == [0, 1, 0, 1]


def test_what_a_class_cannot_answer():
    class Mute:
        def __init__(self, env, seed):
            pass

        def act(self, obs):
            return np.zeros(7)

    trained = ClassSubject(Mute, "Mute").train(CHAIN, 0, [0])
    with pytest.raises(CapabilityError, match="Mute has no method v"):
        trained.v(CHAIN.obs)
    with pytest.raises(RuntimeError, match=r"Mute.act returned shape \(7,\), expected \(3,\)"):
        trained.act(CHAIN.obs)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("nowhere.py:QLearner", "'nowhere.py:QLearner' is no class to probe"),
        ("QLearner", "give path/to/file.py:Name"),
        (f"{FILE}:Learner", "It has QLearner, MeanLearner"),
    ],
)
def test_classes_that_are_not_there(where, message):
    with pytest.raises(ConfigError) as error:
        load_class(where)
    assert message in str(error.value)


def test_an_ajax_agent_reads_untrained():
    from ajax.agents.dqn import DQN
    from ajax.agents.ppo import PPO

    subject = AjaxSubject(DQN())
    assert isinstance(subject, Subject) and subject.name == "DQN"
    trained = subject.train(CHAIN, 0, [0, 1])
    q = trained.q(CHAIN.obs)
    assert q.shape == (2, 3, 3) and not np.allclose(q[0], q[1])
    np.testing.assert_array_equal(trained.act(CHAIN.obs), q.argmax(-1))
    with pytest.raises(CapabilityError, match=r"DQN has no v\(\)"):
        trained.v(CHAIN.obs)
    assert AjaxSubject(PPO()).train(CHAIN, 0, [0]).v(CHAIN.obs).shape == (1, 3)


def test_an_ajax_agents_actions_are_read_on_the_box():
    from ajax.agents.sac import SAC

    spec = Spec.of("box", lambda s, r: (0, 0.0, True), n_states=1, box=Box.of([10.0], [12.0]))
    trained = AjaxSubject(SAC()).train(spec, 0, [0, 1])
    assert np.all(np.abs(trained.act(spec.obs) - 11) < 1)
    values = trained.q(np.repeat(spec.obs, 3, 0), np.array([[10.0], [11.0], [12.0]]))
    assert values.shape == (2, 3) and np.ptp(values[0]) > 0


@pytest.mark.slow
def test_dqn_learns_the_chain_with_all_seeds_at_once():
    from ajax.agents.dqn import DQN
    from ajax.buffers.replay import Replay
    from ajax.networks.torsos import Torso

    agent = DQN(
        gamma=0.8,
        learning_rate=3e-3,
        epsilon=1.0,
        target_period=20,
        torso=Torso(widths=(32,)),
        replay=Replay(capacity=2_500, batch_size=32, steps=1, n_envs=4, warmup=100),
    )
    verdict = judge(chain_case(AjaxSubject(agent), 2_000))
    assert verdict.passed, verdict.text


def test_a_recurrent_agent_is_asked_at_a_history():
    """What was before an episode's beginning makes no difference, and what came after it does."""
    from ajax.agents.dqn import DQN
    from ajax.networks.memory import GRU
    from ajax.networks.torsos import Torso

    spec = CHAIN
    agent = DQN(torso=Torso(widths=(8,), memory=GRU(size=4)))
    trained = AjaxSubject(agent).train(spec, 0, [0, 1])
    obs = np.stack([spec.obs[[0, 1]], spec.obs[[1, 1]], spec.obs[[1, 1]]])  # (time, two histories, features)
    whole = trained.q(History(obs, np.array([[1, 1], [0, 0], [0, 0]])))
    cut = trained.q(History(obs, np.array([[1, 1], [1, 1], [0, 0]])))
    fresh = trained.q(History(obs[1:], np.array([[1, 1], [0, 0]])))
    assert whole.shape == (2, 2, 3)
    np.testing.assert_allclose(cut, fresh, atol=1e-6)
    np.testing.assert_allclose(cut[:, 0], cut[:, 1], atol=1e-6)
    assert np.abs(whole[:, 0] - whole[:, 1]).max() > 1e-6
