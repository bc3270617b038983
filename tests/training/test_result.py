"""What a training returns: arrays, tables, pictures, and runs that act, are evaluated, saved and continued."""

from __future__ import annotations

import numpy as np
import pytest

from ajax import Result, evaluate, load, resume
from ajax.core.errors import FolderInUse
from ajax.core.records import Inputs
from ajax.training import session
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_DQN, TINY_PPO, TINY_TD3, assert_same_runs, leaves, train


@pytest.fixture(scope="module")
def result() -> Result:
    """Two seeds, 48 steps, 3 evaluations of 4 episodes."""
    return train(TINY_PPO, DISCRETE, seeds=[3, 8], evaluations=3, episodes=4)


def test_arrays_are_seeds_by_evaluations(result):
    assert result.steps.tolist() == [16, 32, 48] and result.steps.dtype == np.int64
    assert result.returns.shape == result.lengths.shape == (2, 3)
    assert result.seeds == [3, 8] and result.lanes == ["seed 3", "seed 8"]
    assert all(values.shape == (2, 3) for values in result.metrics.values())
    assert {"policy_loss", "value_loss", "entropy", "train/return", "train/episodes"} <= result.metrics.keys()
    assert (result.stopped, result.interrupted, result.problems) == ({}, 0, [])
    assert result.mean_return == pytest.approx(result.returns[:, -1].mean())
    assert repr(result) == f"<PPO on IdentityEnv: 2 runs, mean return {result.mean_return:.1f}>"
    assert result.agent == TINY_PPO


def test_rows_and_frame_say_the_same(result):
    pandas = pytest.importorskip("pandas")
    rows, frame = result.rows(), result.frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == len(rows) == 6
    assert [(row["step"], row["seed"]) for row in rows[:3]] == [(16, 3), (16, 8), (32, 3)]
    last = frame[frame.step == 48].set_index("seed")["return"]
    assert last[3] == result.returns[0, -1] and last[8] == result.returns[1, -1]


def test_plot_writes_a_picture(result, tmp_path):
    figure = result.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_title(loc="left") == "PPO on IdentityEnv, 2 seeds"


def test_a_saved_result_is_the_same_and_can_be_continued(result, tmp_path):
    assert result.save(tmp_path / "run") == tmp_path / "run"
    again = load(tmp_path / "run", env=DISCRETE)
    assert_same_runs(result, again)
    assert again.rows() == result.rows()
    with pytest.raises(FolderInUse):
        result.save(tmp_path / "run")
    longer = resume(tmp_path / "run", 64, env=DISCRETE, progress=False)
    assert longer.steps.tolist() == [16, 32, 48, 64]
    assert_same_runs(longer, train(TINY_PPO, DISCRETE, 64, seeds=[3, 8], horizon=48))


def test_act_is_greedy_and_in_the_environments_units():
    discrete = train(TINY_DQN, DISCRETE, 16)
    obs = np.array([[0.0, 1.0], [3.0, -1.0]], np.float32)
    actions = discrete.act(obs)
    q = discrete.agent.q(discrete.run(0).agent, Inputs(obs))
    np.testing.assert_array_equal(actions, np.argmax(q, 1))
    continuous = train(TINY_TD3, CONTINUOUS, 16).act(obs)
    assert continuous.shape == (2, 1) and (np.abs(continuous) <= 1.0).all()


def test_evaluate_takes_any_number_of_episodes(result, tmp_path):
    outcome = result.evaluate(7)
    assert outcome.returns.shape == outcome.lengths.shape == outcome.finished.shape == (2, 7)
    assert outcome.finished.all()
    np.testing.assert_array_equal(result.evaluate(7).returns, outcome.returns)
    result.save(tmp_path / "run")
    np.testing.assert_array_equal(evaluate(tmp_path / "run", episodes=7, env=DISCRETE).returns, outcome.returns)


@pytest.mark.parametrize(
    "steps, evaluations, expected",
    [
        (48, 1, [48]),
        (48, 2, [24, 48]),
        (48, 4, [16, 24, 40, 48]),
        (48, 100, [8, 16, 24, 32, 40, 48]),
        (55, 2, [24, 48]),
        (56, 2, [32, 56]),
    ],
)
def test_as_many_evaluations_as_asked_the_last_at_the_end_and_never_a_step_too_many(steps, evaluations, expected):
    result = train(TINY_PPO, DISCRETE, steps, evaluations=evaluations)
    assert result.steps.tolist() == expected


def test_without_evaluation_the_training_episodes_are_reported():
    result = train(TINY_PPO, DISCRETE, episodes=0)
    np.testing.assert_array_equal(result.returns, result.metrics["train/return"])
    np.testing.assert_array_equal(result.lengths, result.metrics["train/length"])
    assert set(np.ravel(result.metrics["train/episodes"])) <= set(range(1, 17))
    assert "evaluation/unfinished" not in result.metrics


def test_training_metrics_are_means_over_whole_intervals_however_chunked(monkeypatch):
    monkeypatch.setattr(session, "CHUNK_SECONDS", 0.0)
    fine = train(TINY_PPO, DISCRETE, evaluations=6, episodes=0)
    coarse = train(TINY_PPO, DISCRETE, evaluations=2, episodes=0)
    for name in ("entropy", "value_loss"):
        np.testing.assert_allclose(fine.metrics[name].reshape(2, 3).mean(1), coarse.metrics[name][0], rtol=1e-6)


def test_steps_beyond_thirty_two_bits_are_counted_exactly():
    result = train(TINY_PPO, DISCRETE, 8, horizon=10**11)
    run = result.session
    run.tick = tick = 2**30
    assert run.step == 2**33
    report = run.lanes.advance(tick, 1, np.ones(1, bool))
    assert all(np.isfinite(total).all() for total in report.metrics.values())
    run.tick += 1
    assert run.train_to(2**33 + 16, progress=False).steps.tolist() == [8, 2**33 + 16]


def test_a_logger_gets_every_number_of_every_seed_and_is_closed():
    class Recorder:
        def __init__(self):
            self.lines, self.closed = [], 0

        def log(self, step, metrics, seed=None):
            self.lines.append((step, seed, metrics))

        def close(self):
            self.closed += 1

    recorder = Recorder()
    result = train(TINY_PPO.sweep(gamma=[0.5, 0.9]), DISCRETE, seeds=[3], loggers=[recorder])
    assert recorder.closed == 1
    assert [(step, seed) for step, seed, _ in recorder.lines] == [(24, 3), (24, 3), (48, 3), (48, 3)]
    assert recorder.lines[-1][2]["gamma=0.9/return"] == result.returns[1, -1]
    assert all(leaf.shape[0] == 2 for leaf in leaves(result).values())
