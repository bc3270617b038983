"""The deterministic action at either edge of, and inside, a box that overhangs [-1, 1] unequally."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import action_box

CASES = action_box.CASES
ANSWER_DIGEST = action_box.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
