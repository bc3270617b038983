"""Other libraries' agents on the Specs of Ajax's own: `make peers-probe`. Skipped where a library is not installed."""

from __future__ import annotations

import jax
import pytest

from ajax.probing import check
from ajax.probing.baselines import PACKAGES
from ajax.probing.suites import agent_of, peers

CASES = peers.CASES
ANSWER_DIGEST = peers.ANSWER_DIGEST


@pytest.fixture(autouse=True)
def libraries_promote_ranks():
    """Theirs is not held to our rule on shapes."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    pytest.importorskip(PACKAGES[agent_of(CASES[name]).partition(":")[0]])
    check(CASES[name])
