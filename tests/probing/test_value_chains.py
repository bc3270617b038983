"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from __future__ import annotations

import pytest

from ajax.probing import check
from ajax.probing.suites import value_chains

CASES = value_chains.CASES
ANSWER_DIGEST = value_chains.ANSWER_DIGEST


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
