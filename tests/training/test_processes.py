"""Runs in processes of their own: signals, sudden death, another process that goes on, several devices."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ajax import load
from tests.training.tiny import CASES, assert_same_history, assert_same_runs, leaves, train

ROOT = Path(__file__).parents[2]
DQN = (  # noqa: SIM905 (a command line reads best as one)
    "train DQN tests/training/slow_env.py:SlowEnv --set widths=8 --set capacity=64 --set batch_size=4 --set warmup=8"
    " --set n_step=2 --set epsilon=linear:1,0.1 --set replay.steps=1 --evaluations 4 --episodes 2 --seeds 2"
).split()
"""One environment step and one gradient step a tick, on an environment that takes its time."""


def start(*args: object, **environment: str) -> subprocess.Popen:
    """Start the command `ajax`."""
    return subprocess.Popen(
        [sys.executable, "-m", "ajax", *map(str, args)],
        cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ajax(*args: object, **environment: str) -> str:
    """Run the command `ajax` to its end, which must be good; returns standard output."""
    out, err = (process := start(*args, **environment)).communicate()
    assert process.returncode == 0, err
    return out


def wait_for(condition, process: subprocess.Popen, seconds: float = 120.0) -> None:
    """Wait until a condition holds of a process that still runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def steps_saved(folder: Path) -> list[int]:
    return sorted(int(path.stem.removeprefix("step_")) for path in folder.glob("checkpoints/step_*.ckpt"))


def started(folder: Path, times: int = 1):
    """Whether training is under way, for the n-th time."""
    log = folder / "run.log"
    return lambda: log.exists() and log.read_text().count(" UTC training ") == times


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a run that nothing interrupted, of 120 steps."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    ajax(*DQN, "--steps", 120, "--out", folder, "--quiet", SLOW_ENV_SECONDS="0")
    return folder


def assert_same(a: Path, b: Path) -> None:
    first, second = load(a), load(b)
    assert_same_runs(first, second)
    assert_same_history(first, second)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(number, code, whole, tmp_path):
    folder = tmp_path / "run"
    process = start(*DQN, "--steps", 120, "--out", folder, "--quiet", SLOW_ENV_SECONDS="0.05")
    wait_for(started(folder), process)
    time.sleep(0.5)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == code
    assert out == f"interrupted; everything is saved. Go on with: ajax resume {folder}\n"
    assert "Traceback" not in err
    assert 0 < steps_saved(folder)[-1] < 120
    assert "interrupted at step" in (folder / "run.log").read_text()
    ajax("resume", folder, "--quiet", SLOW_ENV_SECONDS="0")
    assert_same(whole, folder)


@pytest.mark.slow
def test_a_second_interrupt_ends_it_at_once(tmp_path):
    process = start(*DQN, "--steps", 120, "--out", tmp_path / "run", "--quiet", SLOW_ENV_SECONDS="2")
    wait_for(started(tmp_path / "run"), process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "Traceback" not in err


def kill_and_resume(moments: list[float], folder: Path) -> list[int]:
    """Train to step 120, killed these times (seconds) after each start; returns the steps last saved."""
    command = [*DQN, "--steps", 120, "--out", folder]
    found = []
    for i, seconds in enumerate(moments):
        process = start(*command, "--quiet", "--checkpoint-seconds", 0, SLOW_ENV_SECONDS="0.05")
        wait_for(started(folder, i + 1), process)
        time.sleep(seconds)
        process.kill()
        process.communicate()
        found.append(steps_saved(folder)[-1])
        command = ["resume", folder]
    ajax("resume", folder, "--quiet", SLOW_ENV_SECONDS="0")
    return found


def test_a_killed_run_goes_on(whole, tmp_path):
    saved = kill_and_resume([1.5, 0.0, 1.5], tmp_path / "run")
    assert 0 < saved[0] <= saved[1] < saved[2] < 120
    assert_same(whole, tmp_path / "run")


@pytest.mark.slow
def test_a_run_killed_at_thirty_random_moments_goes_on(whole, tmp_path):
    moments = random.Random(0)
    for attempt in range(10):
        folder = tmp_path / str(attempt)
        kill_and_resume([moments.uniform(0.0, 1.5) for _ in range(3)], folder)
        assert_same(whole, folder)


DEVICES = """
import sys
import jax
from tests.training.tiny import CASES, train
assert len(jax.devices()) == 8
for name in sys.argv[2:]:
    agent, env, options = CASES[name]
    result = train(agent, env, seeds=8, **options)
    assert not result.session.lanes.apart
    result.save(f"{sys.argv[1]}/{name}")
"""


@pytest.mark.parametrize("names", [["PPO"], pytest.param(["DQN", "SAC", "TD3"], marks=pytest.mark.slow)], ids="-".join)
def test_eight_devices_give_the_result_of_one(names, tmp_path):
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    }
    subprocess.run([sys.executable, "-c", DEVICES, tmp_path, *names], check=True, cwd=ROOT, env=environment)
    for name in names:
        agent, env, options = CASES[name]
        one, eight = train(agent, env, seeds=8, **options), load(tmp_path / name, env=env)
        np.testing.assert_allclose(one.returns, eight.returns, rtol=1e-4)
        first, second = leaves(one), leaves(eight)
        assert first.keys() == second.keys()
        for path in first:
            np.testing.assert_allclose(first[path], second[path], rtol=1e-3, atol=1e-4, err_msg=f"{name}: {path}")
