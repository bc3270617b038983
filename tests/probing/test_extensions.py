"""Every phase that an agent folds, through extensions of known effect."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import extensions

CASES = extensions.CASES
ANSWER_DIGEST = extensions.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
