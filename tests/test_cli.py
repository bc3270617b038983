"""The command line: every command does its work, and every error is one line without a traceback."""

from __future__ import annotations

import csv
import json
import sys
import warnings

import pytest

from ajax import cli

TINY = [
    "--set", "widths=8", "--set", "n_envs=2", "--set", "n_steps=4", "--set", "n_epochs=1", "--set", "n_minibatches=2"
]  # fmt: skip
"""Options of a PPO that takes 8 environment steps and 2 gradient steps at a time."""

SHORT = ["--steps", "32", "--evaluations", "2", "--episodes", "2", "--quiet"]


@pytest.fixture
def ajax(capsys, monkeypatch):
    """Run the command `ajax` in this process; returns exit code, standard output and standard error."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # the command line has its own

    def run(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ajax", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def trained(ajax, tmp_path):
    """A results folder of two seeds."""
    folder = tmp_path / "first"
    assert ajax("train", "PPO", "CartPole-v1", *TINY, *SHORT, "--seeds", 2, "--out", folder)[0] == 0
    return folder


def test_training_prints_where_things_are_and_fills_the_folder(ajax, tmp_path):
    folder = tmp_path / "run"
    code, out, err = ajax("train", "ppo", "CartPole-v1", *TINY, *SHORT, "--seeds", 2, "--out", folder)
    assert (code, err) == (0, "")
    first, last = out.splitlines()
    assert first == f"results in {folder}, learning curve in {folder / 'curve.png'}"
    assert last.startswith("mean return ") and last.endswith(" at step 32")
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names == {"config.json", "progress.csv", "curve.png", "checkpoints", "run.log"}
    config = json.loads((folder / "config.json").read_text())
    assert config["agents"][0]["rollout"] == {
        "config": "Rollout", "n_envs": 2, "n_steps": 4, "n_epochs": 1, "n_minibatches": 2
    }  # fmt: skip
    rows = list(csv.DictReader((folder / "progress.csv").open()))
    assert [(row["step"], row["seed"]) for row in rows] == [("16", "0"), ("16", "1"), ("32", "0"), ("32", "1")]
    assert float(last.split()[2]) == pytest.approx(sum(float(row["return"]) for row in rows[2:]) / 2, abs=0.05)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in (folder / "checkpoints").iterdir()][-1].startswith("step_")
    assert (folder / "run.log").read_text().count("UTC step") == 2


def test_without_a_folder_one_is_named_after_agent_environment_and_time(ajax, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ajax("train", "PPO", "gymnax:CartPole-v1", *TINY, *SHORT)[0] == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("PPO-gymnax-CartPole-v1-")


def test_progress_goes_to_standard_error(ajax, tmp_path):
    _, out, err = ajax("train", "PPO", "CartPole-v1", *TINY, *SHORT[:-1], "--out", tmp_path / "run")
    assert err.startswith("PPO on CartPole-v1, 1 seed\ncompiling ")
    assert "32/32 steps" in err and "return" in err
    assert len(out.splitlines()) == 2


def test_a_sweep_trains_every_value_with_every_seed(ajax, tmp_path):
    folder = tmp_path / "run"
    options = ["--seeds", 2, "--sweep", "gamma=0.9,0.99", "--out", folder]
    assert ajax("train", "PPO", "CartPole-v1", *TINY, *SHORT, *options)[0] == 0
    rows = list(csv.DictReader((folder / "progress.csv").open()))
    assert {(row["label"], row["seed"]) for row in rows} == {
        ("gamma=0.9", "0"), ("gamma=0.9", "1"), ("gamma=0.99", "0"), ("gamma=0.99", "1")
    }  # fmt: skip
    assert [line.partition(": ")[0] for line in ajax("evaluate", folder, "--episodes", 2)[1].splitlines()[:-1]] == [
        "gamma=0.9, seed 0", "gamma=0.9, seed 1", "gamma=0.99, seed 0", "gamma=0.99, seed 1"
    ]  # fmt: skip


def test_resuming_goes_to_the_steps_asked_for_and_says_so(ajax, trained):
    code, out, _ = ajax("resume", trained, "--steps", "0.048k", "--quiet")
    assert code == 0 and out.splitlines()[-1].endswith(" at step 48")
    code, out, _ = ajax("resume", trained, "--quiet")  # nothing is left to do
    assert code == 0 and out.splitlines()[-1].endswith(" at step 48")
    code, out, err = ajax("resume", trained, "--steps", 40, "--quiet")
    assert (code, err) == (1, "ajax: steps=40: the run has taken 48 already. Ask for more.\n")


def test_plot_draws_several_folders(ajax, trained, tmp_path):
    assert ajax("plot", trained, trained, "--out", tmp_path / "both.svg") == (0, f"{tmp_path / 'both.svg'}\n", "")
    assert "<svg" in (tmp_path / "both.svg").read_text()


def test_compare_reports_both_and_the_probability_of_improvement(ajax, trained, tmp_path):
    second = tmp_path / "second"
    assert ajax("train", "PPO", "CartPole-v1", *TINY, *SHORT, "--seeds", 2, "--out", second)[0] == 0
    code, out, _ = ajax("compare", trained, second)
    assert code == 0
    assert "(2 seeds)" in out and "probability that first is better than second: 0.5" in out


def test_agents_and_their_fields_are_listed(ajax):
    code, out, _ = ajax("agents")
    assert code == 0
    assert all(name in out for name in ("DQN", "PPO", "SAC", "TD3", "discrete, continuous"))
    code, out, _ = ajax("agents", "dqn")
    assert code == 0 and "replay.batch_size" in out and "target_period" in out


def test_extensions_are_given_listed_and_resumed(ajax, tmp_path):
    folder = tmp_path / "run"
    given = ["--extension", "RND:scale=linear:0.5,0:features=4", "--extension", "TDErrors"]
    assert ajax("train", "PPO", "CartPole-v1", *TINY, *SHORT, *given, "--out", folder)[0] == 0
    rnd, errors = json.loads((folder / "config.json").read_text())["extensions"]
    assert rnd["scale"] == {"config": "Linear", "start": 0.5, "end": 0.0, "fraction": 1.0} and rnd["features"] == 4
    assert errors == {"config": "TDErrors"}
    assert "evaluation/td_error" in (folder / "progress.csv").read_text().splitlines()[0]
    assert ajax("resume", folder, "--steps", 48, "--quiet")[0] == 0
    assert "CQL" in ajax("extensions")[1] and "on_target" in ajax("extensions")[1]
    assert "alpha" in ajax("extensions", "cql")[1] and "5.0" in ajax("extensions", "cql")[1]
    assert "required" in ajax("extensions", "imitation")[1]


def test_environments_are_listed_and_searched(ajax):
    code, out, _ = ajax("envs", "cartpole")
    assert code == 0
    assert "gymnax: CartPole-v1" in out and "MountainCar" not in out


def test_check_env_says_what_is_wrong(ajax, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from tests.environments.identity_env import IdentityEnv\n"
        "class Broken(IdentityEnv):\n"
        "    def step(self, key, state, action):\n"
        "        state, step = super().step(key, state, action)\n"
        "        return state, step.replace(reward=step.reward / 0)\n"
    )
    assert ajax("check-env", f"{tmp_path}/mine.py:IdentityEnv")[0] == 0
    code, out, _ = ajax("check-env", f"{tmp_path}/mine.py:Broken")
    assert code == 1 and "reward" in out


@pytest.mark.parametrize("command", ["", "train", "resume", "evaluate", "plot", "compare", "agents", "envs"])
def test_help_explains_every_option(ajax, command):
    code, out, _ = ajax(*command.split(), "--help")
    assert code == 0 and "Usage:" in out
    options = [line for line in out.splitlines() if line.startswith("│ --")]
    assert all(len(line.strip("│ ").split()) > 2 for line in options)


def test_without_a_command_the_help_is_shown(ajax):
    code, out, err = ajax()
    assert code == 0 and "train" in out and err == ""


ERRORS = {
    "train PPPO CartPole-v1": (1, "unknown agent 'PPPO'. Did you mean 'PPO'? Known: "),
    "train PPO CartPol-v1": (1, "unknown environment 'CartPol-v1'. Did you mean 'CartPole-v1'?"),
    "train PPO CartPole-v1 --set gama=1": (1, "PPO has no field 'gama'. Did you mean 'gamma'?"),
    "train PPO CartPole-v1 --set gamma": (1, "--set 'gamma': give NAME=VALUE."),
    "train PPO CartPole-v1 --set gamma=high": (1, "PPO: gamma='high': gamma takes a number."),
    "train PPO CartPole-v1 --set n_envs=2.5": (1, "PPO: n_envs='2.5': n_envs takes a whole number."),
    "train PPO CartPole-v1 --set gamma=2": (1, "PPO(gamma=2.0): gamma must be within [0, 1]."),
    "train PPO CartPole-v1 --set learning_rate=linear:1": (1, "learning_rate takes a number, linear:START,END"),
    "train PPO CartPole-v1 --sweep n_envs=2,4": (1, "sweep: n_envs=2 changes the compiled program."),
    "train PPO CartPole-v1 --sweep gamma=": (1, "has a field without values"),
    "train PPO CartPole-v1 --sweep gamma=0.9,0.9": (1, "a value is given twice"),
    "train PPO CartPole-v1 --steps many": (1, "--steps 'many' is not a whole number. Give one such as 50000, 200k"),
    "train PPO CartPole-v1 --steps inf": (1, "--steps 'inf' is not a whole number."),
    "train PPO CartPole-v1 --steps -5": (1, "steps=-5 must be a whole number of at least 1."),
    "train PPO CartPole-v1 --steps 100": (1, "steps=100: PPO takes 2,048 environment steps at a time"),
    "train PPO CartPole-v1 --seeds 0": (1, "seeds=0 must be a whole number of at least 1."),
    "train PPO CartPole-v1 --evaluations 0": (1, "evaluations=0 must be a whole number of at least 1. To run no eval"),
    "train PPO CartPole-v1 --on-nan stopp": (1, "on_nan='stopp' must be one of ('stop', 'warn'). Did you mean 'stop'"),
    "train DQN Pendulum-v1": (1, "DQN needs discrete actions, and this environment's are a Box of shape (1,)."),
    "train TD3 CartPole-v1": (1, "TD3 needs continuous actions (a Box), and this environment's are Discrete"),
    "train PPO nowhere.py:Env": (1, "nowhere.py can't be imported"),
    "train PPO": (2, "Missing argument 'env'. `ajax --help` lists the commands"),
    "train PPO CartPole-v1 --bogus": (2, "No such option: --bogus"),
    "train PPO CartPole-v1 --seeds two": (2, "Invalid value for '--seeds'"),
    "trian PPO CartPole-v1": (2, "No such command 'trian'. Did you mean 'train'?"),
    "resume nowhere": (1, "there is no run in nowhere"),
    "evaluate nowhere": (1, "there is no run in nowhere"),
    "plot nowhere": (1, "nowhere has no progress.csv"),
    "compare nowhere nothing": (1, "nowhere has no progress.csv"),
    "agents PPQ": (1, "unknown agent 'PPQ'."),
    "check-env CartPol-v1": (1, "unknown environment 'CartPol-v1'."),
}


@pytest.mark.parametrize("command", ERRORS)
def test_an_error_is_one_line(ajax, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text = ERRORS[command]
    assert (result := ajax(*command.split()))[0] == code, result
    assert result[2].startswith("ajax: ") and text in result[2] and result[2].count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(ajax, monkeypatch):
    from ajax.core.errors import UnknownName

    monkeypatch.setattr(sys, "argv", ["ajax", "--debug", "agents", "PPQ"])
    with pytest.raises(UnknownName):
        cli.main()


def test_a_defect_is_called_one(ajax, monkeypatch):
    monkeypatch.setattr("ajax.agents.get", lambda name: {}[name])
    code, _, err = ajax("agents", "PPO")
    assert (code, err) == (70, "ajax: a defect of Ajax: KeyError: 'PPO' (`ajax --debug ...` shows where)\n")
