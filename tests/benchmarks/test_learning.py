"""The learning checks: what counts as done, the table's numbers, and the page that holds them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ajax
from benchmarks import learning, learning_report
from benchmarks.learning_rows import ROWS, Peer, Published, Row

ROW = Row(
    ajax.PPO(), "suite:Task-v0", 2_000, peer=Peer("PPO", {"gamma": 0.9}), published=Published(7.0, "them", 1_000_000)
)


def result(final, **more) -> dict:
    return {"final": final, "seconds": 10.0, "wall": 5.0, "steps": [1, 2], "returns": [[0.0, f] for f in final]} | more


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(learning, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(learning, "RUNS", tmp_path / "runs")
    return tmp_path


def test_rows_have_files_of_their_own():
    files = [learning.path_of(row, peer) for row in ROWS for peer in ([False, True] if row.peer else [False])]
    assert len(files) == len(set(files)) and all(" " not in file.name for file in files)


def test_a_row_is_done_when_it_is_whole_and_its_definition_is_the_present_one(folder):
    assert learning.read(ROW, False) is None
    learning.keep(ROW, False, result([1.0] * 8))
    assert learning.read(ROW, False)["final"] == [1.0] * 8
    learning.keep(ROW, True, result([1.0]), partial=True)
    assert learning.read(ROW, True) is None and learning.read(ROW, True, partial=True)["final"] == [1.0]
    learning.keep(ROW, True, result([1.0, 2.0]))
    assert learning.read(ROW, True)["final"] == [1.0, 2.0] and learning.read(ROW, True, partial=True) is None
    longer = Row(ROW.agent, ROW.env, 3_000, peer=ROW.peer)
    assert learning.read(longer, False) is None


class Agent:
    """Trains nothing: half of the steps, then interrupted; `resume` gives the rest."""

    def train(self, env, steps, *, out, seeds, **options):
        (out / "checkpoints").mkdir(parents=True)
        return SimpleNamespace(interrupted=15, steps=np.array([steps // 2]), returns=np.zeros((seeds, 1)))


@pytest.mark.parametrize(
    ("present", "fits"),
    [
        ({"agent": {"a": {"b": 1, "new": 2}}, "options": {"c": 1}}, True),
        ({"agent": {"a": {"b": 2}}, "options": {"c": 1}}, False),
        ({"agent": {"a": {}}, "options": {"c": 1}}, False),
        ({"agent": {"a": {"b": 1}}, "options": {"c": 1, "new": 2}}, False),
        ({"agent": {"a": {"b": 1}}}, False),
    ],
)
def test_a_field_that_agents_have_gained_leaves_results_as_they_are(present, fits):
    assert learning.same(present, {"agent": {"a": {"b": 1}}, "options": {"c": 1}}) is fits


def test_an_interrupted_row_goes_on_from_its_checkpoint(folder, monkeypatch):
    row = Row(Agent(), "Task-v0", 96, seeds=2)
    with pytest.raises(SystemExit, match="Agent Task-v0: interrupted at step 48; the same command goes on"):
        learning.measure(row)
    begun = learning.read(row, False, partial=True)
    assert begun["final"] == [] and learning.read(row, False) is None
    learning.keep(row, False, begun | {"seconds": 100.0}, partial=True)
    evaluation = SimpleNamespace(returns=np.array([[1.0, 3.0], [5.0, 7.0]]))
    rest = SimpleNamespace(
        interrupted=0, steps=np.array([48, 96]), returns=np.ones((2, 2)), evaluate=lambda n: evaluation
    )
    monkeypatch.setattr(ajax, "resume", lambda out, agent, dataset: rest)
    measured = learning.measure(row)
    assert measured["final"] == [2.0, 6.0] and measured["steps"] == [48, 96] and 100 <= measured["seconds"] < 120
    assert not (folder / "runs" / "agent-task-v0").exists()


def test_a_teacher_is_trained_once_for_all_rows(folder, monkeypatch):
    sac = ajax.SAC(torso=ajax.Torso(widths=(4,)), replay=ajax.Replay(capacity=256, batch_size=4, warmup=200))
    rows = [Row(Agent(), "Pendulum-v1", 96, teacher=sac, teacher_steps=208, label=label) for label in "ab"]
    first = learning.taught(rows[0])
    assert first.steps[-1] == 208
    monkeypatch.setattr(ajax.SAC, "train", None)  # it is not trained again, but read
    again = learning.taught(rows[1])
    assert again.returns == first.returns
    np.testing.assert_array_equal(again.dataset().reward, first.dataset().reward)


def test_a_definition_is_json_and_holds_every_setting(folder):
    for row in ROWS:
        assert json.loads(json.dumps(learning.definition(row, False))) == learning.definition(row, False)
    changed = Row(ajax.PPO(gamma=0.9), ROW.env, ROW.steps)
    assert learning.definition(changed, False) != learning.definition(ROW, False)
    assert learning.definition(ROW, True)["at"][-1] == ROW.steps and learning.definition(ROW, True)["env"] == "Task-v0"


def test_the_table():
    lines = learning_report.table([(ROW, result([0.0, 1, 2, 3, 4, 5, 6, 100]), result([8.0, 10.0]))]).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:3] == ["PPO", "Task-v0", "2k"]
    assert cells[3].startswith("4 [") and cells[4] == "1"  # the mean of 2, 3, 4 and 5 is 3.5; ten seconds for eight
    assert cells[5].startswith("SB3 (2): 9 [") and cells[6:] == ["5", "7 after 1M"]


def test_the_mean_return_of_a_dataset_is_that_of_its_whole_episodes():
    ends = np.array([0, 0, 1, 0, 1, 0], bool)
    n = len(ends)
    data = ajax.Dataset(
        obs=np.zeros((n, 1)), action=np.zeros((n, 1)), reward=np.arange(6.0), next_obs=np.zeros((n, 1)),
        terminated=ends & (np.arange(n) == 2), truncated=ends & (np.arange(n) == 4),
    )  # fmt: skip
    assert learning.mean_return(data) == pytest.approx((0 + 1 + 2 + 3 + 4) / 2)


def test_the_page_holds_the_results():
    """`python -m benchmarks.learning --report` writes it anew."""
    table = learning_report.table(learning_report.done(learning.results()))
    _, _, rest = learning_report.PAGE.read_text().partition(learning_report.BEGIN)
    assert rest.partition(learning_report.END)[0].strip() == table


def test_a_name_that_no_row_has_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["learning", "--list", "--only", "PPOO"])
    with pytest.raises(SystemExit):
        learning.main()
    assert "--only PPOO: no row has that in its name. Rows: PPO CartPole-v1, " in capsys.readouterr().err
