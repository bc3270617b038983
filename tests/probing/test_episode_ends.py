"""How episodes end: terminations against time limits, rollouts' ends, environments out of step, the rewards' scale."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import episode_ends

CASES = episode_ends.CASES
ANSWER_DIGEST = episode_ends.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
