"""A run that is saved, restored and resumed equals the run that was never interrupted, bit for bit."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import split_run

CASES = split_run.CASES
ANSWER_DIGEST = split_run.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
