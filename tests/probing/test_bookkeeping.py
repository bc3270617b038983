"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import bookkeeping

CASES = bookkeeping.CASES
ANSWER_DIGEST = bookkeeping.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
