"""What every test runs under: strict broadcasting, a compile cache of its own, and the two tiers.

The fast tier (`-m "not slow"`) is what every change must pass. A test that trains belongs in the slow tier.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

# Both are read when JAX and matplotlib are first imported, here and in the processes that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path.home() / ".cache" / "ajax-tests"))
os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import jax
import pytest

LONG = 30.0
"""Seconds past which a fast test is listed, without failing it."""

GRADIENT_STEPS = 128
"""Gradient steps that a fast test may take; seeds trained side by side count once."""

MAPPINGS = 30_000
"""Memory maps past which a worker lets its compiled programs go: at 65,530 Linux refuses more, and XLA crashes."""

DURATIONS = Path(__file__).with_name(".durations")
"""Seconds that each slow test takes, to balance the shards; a test that it lacks counts one second."""

WRITE_DURATIONS = "AJAX_WRITE_DURATIONS"
"""Environment variable: enter the durations of the slow tests of this run in `DURATIONS`."""

SHARD = "AJAX_TEST_SHARD"
"""Environment variable "i/n": run only the i-th of n shards of what is collected (i counts from 0)."""

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

# Deadlines measure the compiler, and random examples would make a red run unrepeatable.
hypothesis.settings.register_profile("ajax", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("ajax")


@pytest.fixture(autouse=True, scope="module")
def programs_let_go() -> Iterator[None]:
    """Keep a worker that has compiled thousands of programs from running out of memory maps."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MAPPINGS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def gradient_budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a fast test that trains for more than `GRADIENT_STEPS` (in this process, by `Session`)."""
    from ajax.training.session import Session

    train_to, taken = Session.train_to, 0

    def counted(session: Session, *args, **options):
        nonlocal taken
        before = gradient_steps(session)
        try:
            return train_to(session, *args, **options)
        finally:
            taken += gradient_steps(session) - before

    monkeypatch.setattr(Session, "train_to", counted)
    yield
    if taken > GRADIENT_STEPS and request.node.get_closest_marker("slow") is None:
        pytest.fail(f"{taken} gradient steps in a fast test, which may take {GRADIENT_STEPS}: fewer, or mark it slow")


def gradient_steps(session) -> int:
    """The gradient steps that each run of a session has taken."""
    from ajax.training.chunk import LOOPS

    agent = session.plan.agents[0]
    return max(0, session.tick - session.lanes.warmup) * LOOPS[agent.loop].updates_per_tick(agent)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark the probes as slow (a module of probes defines `CASES`); keep this shard's share of what is chosen then."""
    for item in items:
        if "probing" in item.path.parts and hasattr(getattr(item, "module", None), "CASES"):
            item.add_marker(pytest.mark.slow)
    yield
    shard = os.environ.get(SHARD)
    if shard:
        index, count = map(int, shard.split("/"))
        of = shards([item.nodeid for item in items], count, durations())
        config.hook.pytest_deselected(items=[item for item in items if of[item.nodeid] != index])
        items[:] = [item for item in items if of[item.nodeid] == index]


def durations() -> dict[str, float]:
    """The seconds on record, by node."""
    return json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}


def shards(nodeids: Iterable[str], count: int, seconds: dict[str, float]) -> dict[str, int]:
    """Which of `count` shards each test runs in: the longest first, each where there is least to do so far.

    Tests of one file that share a parameter stay together, and so does what they cache.
    """
    groups: dict[str, list[str]] = {}
    for nodeid in nodeids:
        file, _, name = nodeid.partition("::")
        groups.setdefault(f"{file}{name[name.find('[') :] if '[' in name else name}", []).append(nodeid)
    weights = {group: sum(seconds.get(nodeid, 1.0) for nodeid in members) for group, members in groups.items()}
    loads, of = [0.0] * count, {}
    for group in sorted(groups, key=lambda group: (-weights[group], group)):
        shard = loads.index(min(loads))
        loads[shard] += weights[group]
        of |= dict.fromkeys(groups[group], shard)
    return of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the fast tests that took longer than `LONG` seconds; keep the slow ones' durations where asked to."""
    spent: dict[str, float] = {}
    slow: set[str] = set()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent[report.nodeid] = spent.get(report.nodeid, 0.0) + report.duration
                slow |= {report.nodeid} if "slow" in report.keywords else set()
    if WRITE_DURATIONS in os.environ:
        known = durations() | {nodeid: round(spent[nodeid], 1) for nodeid in slow}
        DURATIONS.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
    long = {nodeid: seconds for nodeid, seconds in spent.items() if seconds > LONG and nodeid not in slow}
    if long:
        terminalreporter.section(f"fast tests over {LONG:.0f} s: shorten them, or mark them slow")
        for nodeid, seconds in sorted(long.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{seconds:6.1f} s  {nodeid}")
