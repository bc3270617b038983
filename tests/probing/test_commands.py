"""`ajax probe` and `ajax faults` in this process: what is listed, found, written, and with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ajax.core.errors import ConfigError, UnknownName
from ajax.probing.commands import faults, probe
from ajax.probing.suites import MODULES, agent_of, cases, load
from tests.probing import agents

LEARNERS = Path(__file__).parent / "learners" / "numpy_q.py"
CHAIN = """
import numpy as np
from ajax.probing import Case, Query
def read(budget, seeds):
    return np.ones((len(seeds), 1)) - 40 / max(budget, 80)
CASES = {"one-X": Case("one-X", (Query("Q", 1.0, {"half": 0.5}),), read, 4000, (0.02,))}
"""

ONE = """
import numpy as np
class One:
    gamma = 0.7
    def __init__(self, env, seed): pass
    def learn(self, steps): pass
    def q(self, obs): return np.zeros((len(obs), 3))
"""


def invoke(app, *arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_without_an_agent_probe_lists_what_there_is():
    text = invoke(probe).output
    assert all(name in text for name in (*MODULES, "DQN", "PPO", "sb3:DQN", "sbx:SAC"))


def test_a_class_that_learns_passes(tmp_path):
    done = invoke(
        probe, f"{LEARNERS}:QLearner", "--budget", 1500, "--html", tmp_path / "a.html", "--junit", tmp_path / "a.xml"
    )
    assert done.exit_code == 0, done.output
    assert "4 passed" in done.output
    assert "two-step chain" in (tmp_path / "a.html").read_text()
    assert 'failures="0"' in (tmp_path / "a.xml").read_text()


def test_a_mistake_is_named_and_fails():
    done = invoke(probe, f"{LEARNERS}:MeanLearner", "--budget", 1500)
    assert done.exit_code == 1
    assert "mean instead of max" in " ".join(done.output.split())


def test_a_class_needs_one_method_to_be_read(tmp_path):
    """`q` alone is read, without `act`."""
    file = tmp_path / "one.py"
    file.write_text(ONE)
    text = " ".join(invoke(probe, f"{file}:One", "--budget", 10).output.split())
    assert "3 failed" in text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["DQM"], UnknownName),
        (["DQN", "--module", "value_chain"], UnknownName),
        (["nowhere.py:Learner"], ConfigError),
        (["certify", "value_chains", "p0"], UnknownName),
    ],
)
def test_what_is_not_there(arguments, error):
    assert isinstance(invoke(probe, *arguments).exception, error)


def test_a_class_needs_a_discount_and_something_to_read(tmp_path):
    file = tmp_path / "mute.py"
    file.write_text("class Mute:\n    pass\n")
    assert "give its discount" in str(invoke(probe, f"{file}:Mute").exception)
    assert "nothing to read" in str(invoke(probe, f"{file}:Mute", "--gamma", 0.9).exception)


def test_calibration(tmp_path):
    module = tmp_path / "test_chains.py"
    module.write_text(CHAIN)
    ladders = [tmp_path / "a.json", tmp_path / "b.json"]
    for first, file in zip((1000, 2000), ladders, strict=True):
        assert invoke(probe, "ladder", module, "one-X", first, "1000,4000", file).exit_code == 0
    assert "Choice(budget=1000, tolerances=(0.08,))" in invoke(probe, "choose", module, "one-X", *ladders).output
    assert "cert 32/32" in invoke(probe, "certify", module, "one-X").output
    assert "ANSWER_DIGEST" in invoke(probe, "answers", module).output
    for file in ladders:
        invoke(probe, "ladder", module, "one-X", 1000 if file == ladders[0] else 2000, "100,200", file)
    assert "no budget qualifies" in str(invoke(probe, "choose", module, "one-X", *ladders).exception)


def test_faults_are_listed():
    done = invoke(faults, "list", "--root", Path(__file__).parents[2])
    assert "P0a-D01-DQN" in done.output


def test_faults_need_a_checkout(tmp_path):
    assert "run this in a checkout" in str(invoke(faults, "list", "--root", tmp_path).exception)


def test_cases_are_found_by_agent():
    assert {agent_of(case) for case in cases("DQN")} == {"DQN"}
    assert len(cases("DQN", "value_chains")) < len(cases("DQN"))
    assert set(agents.PRESETS) >= {agent_of(case) for module in MODULES for case in load(module).values()}
