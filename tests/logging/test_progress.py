"""Progress on a terminal, in a pipe and switched off."""

import io

import pytest
from rich.console import Console

from ajax.logging.progress import Progress, _short


class Clock:
    """Seconds that pass only when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(terminal: bool, enabled: bool = True) -> tuple[str, str]:
    """Run a short progress; return what was written, and the last status."""
    clock, text = Clock(), io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with Progress(10_000, "PPO on CartPole-v1 [8 seeds]", enabled=enabled, console=console, clock=clock) as progress:
        with progress.phase("compiling"):
            clock.now += 3.2
        clock.now += 1
        progress.update(1000)
        clock.now += 1
        progress.update(2000, return_=21.53)
        status = progress._status()
    return text.getvalue(), status


def test_a_pipe_gets_one_line_an_evaluation():
    lines = shown(terminal=False)[0].splitlines()
    assert lines == [
        "PPO on CartPole-v1 [8 seeds]",
        "compiling 3.2 s",
        "2k/10k steps, 1k steps/s, return 21.53, 0:00:08 left",
    ]


def test_a_terminal_gets_a_bar_with_the_same_numbers():
    text, status = shown(terminal=True)
    assert status == "2k/10k steps, 1k steps/s, return 21.53, 0:00:08 left"
    assert "━" in text
    assert status in text


def test_switched_off_it_is_silent():
    assert shown(terminal=False, enabled=False)[0] == ""
    assert shown(terminal=True, enabled=False)[0] == ""


def test_before_any_step_there_is_no_speed_and_at_the_end_no_time_left():
    clock = Clock()
    progress = Progress(500, "x", start=100, clock=clock, enabled=False)
    assert progress._status() == "100/500 steps"
    with progress.phase("compiling"):
        clock.now = 2.0
        assert progress._status() == "100/500 steps, compiling 2.0 s"
    clock.now = 4.0
    progress.update(500, return_=float("nan"))
    assert progress._status() == "500/500 steps, 200 steps/s, return nan"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (950, "950"), (1500, "1.5k"), (100_000, "100k"), (3_254_000, "3.25M"), (2e9, "2G")]
)
def test_counts_are_short(number, text):
    assert _short(number) == text
