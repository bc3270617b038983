"""Memory: a recurrent agent acts on what its episode showed it, and restarts at the episode's end."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import memory

CASES = memory.CASES
ANSWER_DIGEST = memory.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
