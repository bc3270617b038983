"""SAC's value chain for those who learn its soft values in other ways: CrossQ and REDQ."""

from __future__ import annotations

from ajax.probing import Actor, Case, Problem
from ajax.probing.suites.boxes import box_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.value_chains.boxes import BOXED, PLACES, SOFT, TEMPERATURE


def chain(agent: str, calibrated: Calibrated) -> Case:
    """Soft values of the two-step chain in a box."""
    title, subject = f"{agent}, two-step chain in a box", make(agent, alpha=TEMPERATURE)
    return box_case(f"p0a-{agent}", title, subject, Problem(BOXED, SOFT, Actor()), q=PLACES[:2], calibrated=calibrated)


CASES = (
    chain(
        "CrossQ",
        Calibrated(8_000, (0.027, 0.038), "8000, the only budget tried; worst error of 64 seeds 0.019; cert 32/32"),
    ),
    chain(
        "REDQ",
        Calibrated(4_000, (0.031, 0.044), "4000, the only budget tried; worst error of 64 seeds 0.022; cert 32/32"),
    ),
)
