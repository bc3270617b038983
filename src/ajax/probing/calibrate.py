"""Budgets and tolerances are measured, never guessed, on seeds that no check uses.

ladder    read blocks of 32 seeds untrained and at a series of budgets
choose    the smallest budget at which twice the worst seed's error fits, and the tolerances
certify   check them on a third block
alarms    judge the case on 200 blocks of fresh seeds: how often it fails a right agent
answers   what a module's answer digest covers
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from ajax.core.errors import ConfigError, unknown_name
from ajax.probing.query import LEAST, LEAST_MARGIN, Case
from ajax.probing.verdict import FIRST, failure_rate, judge

BLOCK = 32  # seeds per block
LADDERS = (1000, 2000)  # first seeds of the blocks that budgets and tolerances are chosen on
CERTIFY = 3000  # first seed of the block that they are checked on
ALARMS = 10_000  # first seed of the blocks that false alarms are counted on
SURE = 0.95  # confidence of the certificate's bound, and of the count that it allows
DUST = 1e-6  # rounding errors of floats, in thousandths


@dataclasses.dataclass(frozen=True, eq=False)
class Ladder:
    """One block's readings at a series of budgets.

    Attributes:
        case: the case's id.
        first_seed: the block is first_seed .. first_seed + 31.
        readings: (seeds, queries) by budget in environment steps, increasing; 0 is untrained.
    """

    case: str
    first_seed: int
    readings: dict[int, np.ndarray]

    def save(self, path: str | Path) -> None:
        """Write the ladder as JSON."""
        rungs = {str(budget): found.tolist() for budget, found in self.readings.items()}
        Path(path).write_text(json.dumps({"case": self.case, "first_seed": self.first_seed, "readings": rungs}))

    @classmethod
    def load(cls, path: str | Path) -> Ladder:
        """Read a ladder that `save` wrote."""
        found = json.loads(Path(path).read_text())
        rungs = {int(budget): np.array(readings, float) for budget, readings in found["readings"].items()}
        return cls(found["case"], found["first_seed"], rungs)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A budget in environment steps, and one tolerance per query."""

    budget: int
    tolerances: tuple[float, ...]


def ladder(case: Case, first_seed: int, budgets: Iterable[int]) -> Ladder:
    """Read the block of 32 seeds from `first_seed` untrained and at each budget (environment steps).

    Raises:
        ConfigError: `first_seed` is not the start of a block for ladders.
    """
    if first_seed not in LADDERS:
        blocks = " or ".join(map(str, LADDERS))
        raise ConfigError(
            f"first seed {first_seed}: ladders are read on blocks of {BLOCK} seeds from {blocks}, apart from the seeds"
            " that checks use."
        )
    seeds = range(first_seed, first_seed + BLOCK)
    return Ladder(case.id, first_seed, {budget: case.read(seeds, budget) for budget in sorted({0, *budgets})})


def tolerances(case: Case, readings: np.ndarray) -> tuple[float | None, ...]:
    """Return the tolerance that (seeds, queries) readings call for, per query; None where none is allowed.

    For a value, twice the worst seed's error, at least 0.02, if that fits under the query's cap; for a margin, half the
    weakest seed's margin, if that reaches 0.25. Rounded to three decimals, to the safe side.
    """
    found: list[float | None] = []
    for query, column in zip(case.queries, readings.T, strict=True):
        errors = query.errors(column)
        if query.kind == "margin":
            margin = math.floor(500 * float(errors.min()) + DUST) / 1000 if np.all(np.isfinite(errors)) else -math.inf
            found.append(margin if margin >= LEAST_MARGIN else None)
        elif query.kind == "exact":
            found.append(0.0 if np.all(errors == 0) else None)
        else:
            worst = float(np.nan_to_num(errors, nan=math.inf).max())
            allowed = max(LEAST, math.ceil(2000 * worst - DUST) / 1000) if math.isfinite(worst) else math.inf
            found.append(allowed if allowed <= query.cap else None)
    return tuple(found)


def choose(case: Case, ladders: Sequence[Ladder]) -> Choice:
    """Pool the ladders and return the smallest budget whose readings call for tolerances that are all allowed.

    Raises:
        RuntimeError: the ladders are another case's or differ in budgets, no budget qualifies, or no training at all
            does: such a probe can't fail.
    """
    foreign = sorted({one.case for one in ladders} - {case.id})
    if foreign:
        raise RuntimeError(f"case {case.id!r} was given the ladder of {foreign[0]!r}")
    if len({tuple(one.readings) for one in ladders}) != 1:
        budgets = [list(one.readings) for one in ladders]
        raise RuntimeError(f"case {case.id!r}: the ladders must have the same budgets; got {budgets}")
    for budget in ladders[0].readings:
        found = tolerances(case, np.concatenate([one.readings[budget] for one in ladders]))
        if None in found:
            continue
        if budget == 0:
            raise RuntimeError(f"case {case.id!r} reads right without training; a probe of it can't fail")
        return Choice(budget, tuple(float(t) for t in found if t is not None))
    raise RuntimeError(f"case {case.id!r}: no budget qualifies.\n{table(case, ladders)}")


def table(case: Case, ladders: Sequence[Ladder]) -> str:
    """Return the worst error (weakest margin) of each query at each budget over all ladders, against its cap."""
    width = max(len(query.name) for query in case.queries)
    budgets = list(ladders[0].readings)
    lines = [" " * width + "     cap" + "".join(f"{budget:>10}" for budget in budgets)]
    for i, query in enumerate(case.queries):
        margin = query.kind == "margin"
        cap = LEAST_MARGIN * 2 if margin else query.cap / 2
        errors = [query.errors(np.concatenate([one.readings[b][:, i] for one in ladders])) for b in budgets]
        worst = [found.min() if margin else found.max() for found in errors]
        lines.append(f"{query.name:<{width}}{cap:>8.3f}" + "".join(f"{value:>10.3f}" for value in worst))
    return "\n".join(lines)


def certify(case: Case) -> str:
    """Train seeds 3000-3031 at the case's own budget and return the sentence for its note: `cert 31/32 ...`.

    Raises:
        RuntimeError: the case is not calibrated.
    """
    readings = case.read(range(CERTIFY, CERTIFY + BLOCK))
    right = case.right_seeds(readings)
    parts = []
    for query, column, tolerance in zip(case.queries, readings.T, case.tolerances, strict=True):
        outside = ~query.within(column, tolerance)
        if outside.any():
            far = query.errors(column[outside])
            worst = far.min() if query.kind == "margin" else far.max()
            word = "margin down to" if query.kind == "margin" else "up to"
            parts.append(f"{outside.sum()} off in {query.name}, {word} {worst:.3f}")
    return f"cert {right.sum()}/{len(right)}" + (f" ({'; '.join(parts)})" if parts else "")


@dataclasses.dataclass(frozen=True)
class Alarms:
    """How often a case failed an agent that is right.

    Attributes:
        failed: blocks of seeds on which it failed.
        blocks: how many there were.
        allowed: how many may fail after a certificate of 32 seeds without one that is wrong.
    """

    failed: int
    blocks: int
    allowed: int

    def __str__(self) -> str:
        return f"{self.failed} of {self.blocks} blocks of seeds fail; its certificate allows {self.allowed}"


def alarms(case: Case, blocks: int = 200, done: Callable[[], None] = lambda: None) -> Alarms:
    """Judge a certified case on fresh blocks of seeds, and return on how many it fails.

    A certificate of 32 right seeds of 32 says, with 95 % confidence, that at most 1 - 0.05^(1/32), 9 %, of all seeds
    read wrong; so many failed blocks are allowed as such a share stays under with 95 % probability.

    Args:
        case: the case.
        blocks: how many blocks, of 16 seeds each, of which the verdict trains eight or all.
        done: called after each block.

    Raises:
        RuntimeError: the case is not calibrated.
    """
    from scipy.stats import binom

    failed = 0
    for block in range(blocks):
        failed += not judge(case, ALARMS + 2 * len(FIRST) * block).passed
        done()
    rate = failure_rate(1 - (1 - SURE) ** (1 / BLOCK))
    return Alarms(failed, blocks, int(binom.ppf(SURE, blocks, rate)))


def describe(cases: Iterable[Case]) -> str:
    """Return every query's kind, right answer, wrong answers and tolerance, to six decimals: what `digest` hashes."""
    lines = []
    for case in sorted(cases, key=lambda c: c.id):
        allowed = case.tolerances or (math.nan,) * len(case.queries)
        for query, tolerance in zip(case.queries, allowed, strict=True):
            wrong = ", ".join(f"{name}={value:.6f}" for name, value in sorted(query.wrong.items()))
            lines.append(f"{case.id} | {query.name} | {query.kind} {query.right:.6f} +- {tolerance:.6f} | {wrong}")
    return "\n".join(lines)


def digest(cases: Iterable[Case]) -> str:
    """Return the 12 hexadecimal digits that pin the answers of a module's cases."""
    return hashlib.sha256(describe(cases).encode()).hexdigest()[:12]


def load_cases(module: str) -> dict[str, Case]:
    """Return the `CASES` of a module, given by dotted name or as a path to a file.

    Raises:
        ConfigError: there is no such module, or it has no `CASES`.
    """
    path = Path(module)
    try:
        if path.suffix == ".py":
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None  # a .py path always has both
            found = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found)
        else:
            found = importlib.import_module(module)
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise ConfigError(f"no module of cases {module!r}: {error}. Give a dotted name or a .py file.") from error
    if "CASES" not in vars(found):
        raise ConfigError(f"module {module!r} has no CASES: a dict of ajax.probing.Case by id.")
    return dict(found.CASES)


def find_case(module: str, case: str) -> Case:
    """Return one case of a module by its id.

    Raises:
        ConfigError: see `load_cases`.
        UnknownName: the module has no such case.
    """
    cases = load_cases(module)
    if case not in cases:
        raise unknown_name("case", case, cases)
    return cases[case]


def main(arguments: Sequence[str] | None = None, package: str = "") -> None:
    """Run `ladder|choose|certify|alarms|answers MODULE ...`; module names are taken inside `package`, if given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    options = {
        "ladder": ("case", "first_seed", "budgets", "file"),
        "choose": ("case", "files"),
        "certify": ("case",),
        "alarms": ("case",),
        "answers": (),
    }
    for name, positional in options.items():
        command = commands.add_parser(name)
        for option in ("module", *positional):
            kind = int if option == "first_seed" else str
            command.add_argument(option, type=kind, nargs="+" if option == "files" else None)
    given = parser.parse_args(arguments)
    module = f"{package}.{given.module}" if package and not given.module.endswith(".py") else given.module
    if given.command == "answers":
        cases = load_cases(module).values()
        print(describe(cases))
        print(f"ANSWER_DIGEST = {digest(cases)!r}")
        return
    case = find_case(module, given.case)
    if given.command == "ladder":
        found = ladder(case, given.first_seed, [int(budget) for budget in given.budgets.split(",")])
        found.save(given.file)
        print(table(case, [found]))
    elif given.command == "choose":
        ladders = [Ladder.load(file) for file in given.files]
        print(table(case, ladders))
        print(choose(case, ladders))
    elif given.command == "alarms":
        print(alarms(case))
    else:
        print(certify(case))
