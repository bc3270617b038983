"""`ajax probe` and `ajax faults`: the testing system on the command line."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from ajax.probing.mutate import Stage
    from ajax.probing.query import Case

# in the repository that faults are planted in
CATALOGUE, TESTS, EQUIVALENT = Path("tests/probing/faults"), "tests/probing", Path("tests/probing/equivalent.json")
# tests of every agent
COMMON = (
    "agents/test_keys.py::test_every_network_of_another_seed_is_another[{}]",
    "agents/test_keys.py::test_exploration_draws_from_the_key_and_evaluation_does_not[{}]",
    "extensions/test_phase_contract.py::test_a_loss_term_moves_the_network_it_names_and_that_one_only[{}-critic_loss]",
    "extensions/test_phase_contract.py::test_a_loss_term_moves_the_network_it_names_and_that_one_only[{}-actor_loss]",
)


class _Probe(TyperGroup):
    """Commands by name; whatever else comes first is something to probe."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


probe = typer.Typer(cls=_Probe, invoke_without_command=True, no_args_is_help=False)
faults = typer.Typer(no_args_is_help=True)

Module = Annotated[str, typer.Argument(help="A module of cases: value_chains, ..., a dotted name, or a .py file.")]
CaseId = Annotated[str, typer.Argument(metavar="CASE", help="A case's id.")]
Root = Annotated[Path, typer.Option(help="A checkout of Ajax.")]
Scratch = Annotated[
    Path, typer.Option(help="Folder of the copies and of results.csv, which a second call goes on from.")
]
Workers = Annotated[int | None, typer.Option(help="Runs at once. [default: what CPUs and memory allow]")]


@probe.callback()
def probes(context: typer.Context) -> None:
    """Probe an agent on tiny environments with known answers; without an agent, list what can be probed.

    Examples: `ajax probe DQN`, `ajax probe DQN --module value_chains --html report.html`,
    `ajax probe sb3:DQN`, `ajax probe path/to/file.py:Class`.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.table import Table

    from ajax.probing.suites import MODULES, PEERS, agent_of, load

    counts = {module: Counter(agent_of(case) for case in load(module).values()) for module in (*MODULES, PEERS)}
    table = Table("agent", "cases by module")
    for agent in sorted(set().union(*counts.values())):
        table.add_row(agent, "\n".join(f"{module}: {n[agent]}" for module, n in counts.items() if n[agent]))
    Console().print(table)
    print("A class of your own: ajax probe path/to/file.py:Class")


@probe.command("run")
def run(
    what: Annotated[str, typer.Argument(help="An agent of Ajax, sb3:AGENT, sbx:AGENT, or path/to/file.py:Class.")],
    module: Annotated[str | None, typer.Option(help="Only the cases of one module (an agent of Ajax).")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with a picture of every reading.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount of a class. [default: its attribute gamma]")] = None,
    budget: Annotated[
        int | None, typer.Option(help="Environment steps of a class in each probe. [default: 5000]")
    ] = None,
) -> None:
    """Train every case of an agent and print a verdict on each; exit code 1 where one fails.

    `ajax probe DQN` is short for `ajax probe run DQN`.
    """
    from rich.console import Console
    from rich.progress import Progress

    from ajax.probing import baselines, report, suite

    console = Console()
    chosen = _cases(what, module, gamma, budget)
    workers = 1 if ":" in what else os.cpu_count() or 1
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=len(chosen))
        outcomes = suite.run(chosen, workers, done=lambda outcome: progress.advance(task))
    library = what.partition(":")[0]
    title = f"Probes of {what}" + (f", {baselines.version(library)}" if library in baselines.PACKAGES else "")
    console.print(report.terminal(outcomes, title))
    if html is not None:
        report.page(outcomes, html, title)
        print(f"page in {html}")
    if junit is not None:
        report.junit(outcomes, junit, title)
        print(f"JUnit XML in {junit}")
    raise typer.Exit(0 if all(outcome.good for outcome in outcomes) else 1)


@probe.command()
def ladder(
    module: Module,
    case: CaseId,
    first_seed: Annotated[int, typer.Argument(help="1000 or 2000: the first of 32 seeds.")],
    budgets: Annotated[str, typer.Argument(help="Environment steps: 1000,2000,4000.")],
    file: Annotated[Path, typer.Argument(help="JSON file to write.")],
) -> None:
    """Calibrate, step 1: read a block of seeds untrained and at a series of budgets."""
    from ajax.probing import calibrate
    from ajax.probing.suites import find

    found = calibrate.ladder(find(module, case), first_seed, [int(budget) for budget in budgets.split(",")])
    found.save(file)
    print(calibrate.table(find(module, case), [found]))


@probe.command()
def choose(
    module: Module, case: CaseId, files: Annotated[list[Path], typer.Argument(help="Ladders of both blocks.")]
) -> None:
    """Calibrate, step 2: the smallest budget that its readings' errors allow, and the tolerances."""
    from ajax.probing import calibrate
    from ajax.probing.suites import find

    ladders = [calibrate.Ladder.load(file) for file in files]
    print(calibrate.table(find(module, case), ladders))
    with _one_line():
        print(calibrate.choose(find(module, case), ladders))


@probe.command()
def certify(module: Module, case: CaseId) -> None:
    """Calibrate, step 3: check the case's budget and tolerances on fresh seeds."""
    from ajax.probing import calibrate
    from ajax.probing.suites import find

    with _one_line():
        print(calibrate.certify(find(module, case)))


@probe.command()
def alarms(
    module: Module,
    case: CaseId,
    blocks: Annotated[int, typer.Option(help="Blocks of seeds to judge.", min=1)] = 200,
) -> None:
    """Count false alarms: judge a certified case on blocks of fresh seeds. Exit code 1 where too many fail."""
    from rich.progress import Progress

    from ajax.probing import calibrate
    from ajax.probing.suites import find

    with _one_line(), Progress(transient=True) as progress:
        task = progress.add_task(case, total=blocks)
        found = calibrate.alarms(find(module, case), blocks, done=lambda: progress.advance(task))
    print(found)
    raise typer.Exit(0 if found.failed <= found.allowed else 1)


@probe.command()
def answers(module: Module) -> None:
    """Print every right and wrong answer of a module, and the digest that pins them."""
    from ajax.probing import calibrate
    from ajax.probing.suites import load

    found = load(module).values()
    print(calibrate.describe(found))
    print(f"ANSWER_DIGEST = {calibrate.digest(found)!r}")


@faults.command("list")
def list_(root: Root = Path()) -> None:
    """List the planted faults of a checkout: id, file, and the mistake that a probe should name."""
    from rich.console import Console
    from rich.table import Table

    from ajax.probing.faults import load_catalogue

    table = Table("fault", "file", "mistake", "caught by")
    for fault in load_catalogue(_checkout(root) / CATALOGUE).values():
        table.add_row(fault.id, fault.path, fault.mistake, "\n".join(fault.catches))
    Console().print(table)


@faults.command()
def plant(
    ids: Annotated[list[str] | None, typer.Argument(help="Faults; all of them by default.")] = None,
    root: Root = Path(),
    scratch: Scratch = Path("results/faults"),
    workers: Workers = None,
) -> None:
    """Plant faults in copies of a checkout and run the tests that should notice; exit code 1 where one survives."""
    from ajax.probing.faults import main

    statuses = main([str(scratch), *(ids or [])], _checkout(root), _checkout(root) / CATALOGUE, TESTS, workers)
    raise typer.Exit(0 if all(status == "caught" for status in statuses.values()) else 1)


@faults.command()
def mutate(
    agent: Annotated[str, typer.Argument(help="An agent of Ajax.")],
    root: Root = Path(),
    scratch: Scratch = Path("results/mutations"),
    most: Annotated[int | None, typer.Option(help="Run only this many, evenly spread.")] = None,
    unit: Annotated[
        bool, typer.Option("--unit", help="Leave out the probes, which survivors of unit tests meet.")
    ] = False,
    workers: Workers = None,
) -> None:
    """Mutate an agent and the functions it uses; report the share that its unit tests and probes kill."""
    from ajax.agents import get
    from ajax.probing import mutate as mutations

    root, cls = _checkout(root), get(agent)
    agent = cls.__name__
    made = mutations.of_agent(root, f"agents/{cls.__module__.rpartition('.')[2]}.py")
    chosen = made if most is None else made[:: -(-len(made) // most)]
    known = json.loads((root / EQUIVALENT).read_text()) if (root / EQUIVALENT).exists() else {}
    equivalent = {m.fault.id: known[m.fault.id] for m in chosen if m.fault.id in known}
    stages = _stages(agent, root)[: 2 if unit else 3]
    with _one_line():
        results = mutations.run(
            [m for m in chosen if m.fault.id not in equivalent],
            stages,
            root,
            scratch,
            copies=scratch / f"copies-{agent}",
            workers=workers,
            done=lambda result: print(result.id, result.status, result.nodes, flush=True),
        )
    report = mutations.score(chosen, results, equivalent)
    (scratch / f"{agent}.txt").write_text(report + "\n")
    print(report)


def _cases(what: str, module: str | None, gamma: float | None, budget: int | None) -> list[Case]:
    """The cases of an agent of Ajax, of another library's, of a subclass of one, or of any class."""
    from ajax.core.errors import ConfigError
    from ajax.probing.baselines import PACKAGES, origin, package
    from ajax.probing.subjects import load_class
    from ajax.probing.suites import anyones, baselines, cases

    def refuse(**options: Any) -> None:
        for name, value in options.items():
            if value is not None:
                raise ConfigError(f"--{name} {value} doesn't apply to the probes of {what}: leave it out.")

    if ":" not in what:
        refuse(gamma=gamma, budget=budget)
        return cases(what, module)
    refuse(module=module)
    library, _, agent = what.partition(":")
    if library in PACKAGES:
        refuse(gamma=gamma, budget=budget)
        package(library)
        return baselines.cases(library, agent)
    subject = load_class(what)
    cls: Any = subject.make
    known = origin(cls, tuple(baselines.BUILDERS)) if isinstance(cls, type) else None
    if known is not None:
        refuse(gamma=gamma, budget=budget)
        return baselines.cases(*known, cls)
    if gamma is None and not hasattr(cls, "gamma"):
        raise ConfigError(f"{subject.name} has no attribute gamma: give its discount, --gamma 0.9.")
    found = anyones.cases(subject, cls.gamma if gamma is None else gamma, budget or anyones.BUDGET)
    if not found:
        raise ConfigError(f"{subject.name} has no method q, v or act: there is nothing to read off it.")
    return found


def _stages(agent: str, root: Path) -> list[Stage]:
    """Unit tests of a mutated file of core, the agent's unit tests, the agent's probes."""
    from ajax.probing.mutate import Mutation, Stage
    from ajax.probing.suites import MODULES, agent_of, load

    def core(mutation: Mutation) -> list[str]:
        folder, _, name = mutation.fault.path.rpartition("/")
        file = f"{folder}/test_{name}"
        return [file] if (root / "tests" / file).exists() else []

    def probes(mutation: Mutation) -> list[str]:
        return [
            f"probing/test_{module}.py::test_learns[{case.id}]"
            for module in MODULES
            for case in load(module).values()
            if agent_of(case) == agent
        ]

    def unit(mutation: Mutation) -> list[str]:
        return [f"agents/{agent}", *(test.format(agent) for test in COMMON)]

    return [Stage("core", core), Stage(f"{agent}-unit", unit), Stage(f"{agent}-probes", probes)]


def _checkout(root: Path) -> Path:
    from ajax.core.errors import ConfigError

    if not (root / CATALOGUE).is_dir():
        raise ConfigError(f"{root.resolve()} holds no {CATALOGUE}: run this in a checkout of Ajax, or give --root.")
    return root.resolve()


@contextmanager
def _one_line() -> Iterator[None]:
    """Say in one line what the harness refuses: a case that is not calibrated, no budget that qualifies."""
    from ajax.core.errors import ConfigError

    try:
        yield
    except RuntimeError as error:
        raise ConfigError(str(error)) from error
