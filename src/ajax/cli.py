"""The command `ajax`."""

from __future__ import annotations

import re
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ajax.core.errors import AjaxError
from ajax.probing.commands import faults, probe

UsageError: Any = typer.BadParameter.__base__
"""Click's, wherever this version of Typer keeps it."""

app = typer.Typer(
    name="ajax",
    help="Train reinforcement-learning agents in JAX, and find out what is wrong with any agent.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(probe, name="probe", rich_help_panel="Test an agent")
app.add_typer(faults, name="faults", rich_help_panel="Test an agent", help="Plant faults, and see what notices.")

Steps = Annotated[str, typer.Option(help="Environment steps of each seed: 50000, 200k, 1.5M.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="A field of the agent, NAME=VALUE, as `ajax agents NAME` lists them. May be repeated."),
]
CheckpointSeconds = Annotated[float, typer.Option(help="Least time between two checkpoints.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read the options that come before a command; without one, show the help."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(rich_help_panel="Train")
def train(
    agent: Annotated[str, typer.Argument(help="An agent: `ajax agents` lists them.")],
    env: Annotated[str, typer.Argument(help="An environment: `ajax envs` lists them. Or path/to/file.py:Class.")],
    steps: Steps = "100k",
    seeds: Annotated[int, typer.Option(help="How many seeds to train.")] = 1,
    set_: Set = None,
    sweep: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE,VALUE,...: train every value with every seed. May be repeated.")
    ] = None,
    extension: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME or NAME:FIELD=VALUE:..., as `ajax extensions` lists them. May be repeated; folded in order."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Results folder. [default: runs/AGENT-ENV-TIME]")] = None,
    evaluations: Annotated[int, typer.Option(help="How often to evaluate, evenly spread.")] = 20,
    episodes: Annotated[int, typer.Option(help="Episodes in an evaluation; 0: report training episodes.")] = 16,
    normalize_observations: Annotated[bool, typer.Option(help="Normalize observations by running statistics.")] = False,
    normalize_rewards: Annotated[bool, typer.Option(help="Scale the rewards that the agent learns from.")] = False,
    reward_normalization_gamma: Annotated[
        float | None, typer.Option(help="Discount of the sums whose deviation scales rewards. [default: none]")
    ] = None,
    episode_length: Annotated[int | None, typer.Option(help="Cut episodes after this many steps.")] = None,
    action_repeat: Annotated[int, typer.Option(help="Repeat each action this often.")] = 1,
    on_nan: Annotated[str, typer.Option(help="When a number is no longer finite: stop that seed, or warn.")] = "stop",
    horizon: Annotated[str | None, typer.Option(help="Steps at which schedules end. [default: --steps]")] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Also log to TensorBoard files in this folder.")] = None,
    wandb: Annotated[str | None, typer.Option(help="Also log to this Weights & Biases project.")] = None,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    quiet: Quiet = False,
) -> None:
    """Train an agent on an environment.

    Example: `ajax train PPO CartPole-v1 --seeds 8 --steps 200k --set gamma=0.98`

    Ctrl-C saves; `ajax resume FOLDER` goes on exactly where it stopped.
    """
    from ajax.agents import get
    from ajax.core.config import assign
    from ajax.training.driver import train as run

    made: Any = get(agent)()
    made = assign(made, dict(_assignment(made, text) for text in set_ or []))
    loggers = _loggers(tensorboard, wandb)
    folder = out or Path("runs") / f"{type(made).__name__}-{_file_name(env)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    result = run(
        made.sweep(**dict(_values(made, text) for text in sweep or [])), env, _count("--steps", steps),
        seeds=seeds,
        horizon=None if horizon is None else _count("--horizon", horizon),
        evaluations=evaluations, episodes=episodes,
        normalize_observations=normalize_observations, normalize_rewards=normalize_rewards,
        reward_normalization_gamma=reward_normalization_gamma,
        episode_length=episode_length, action_repeat=action_repeat,
        extensions=[_extension(text) for text in extension or []],
        on_nan=on_nan,  # type: ignore[arg-type]  # checked with the rest of the plan
        out=folder, checkpoint_seconds=checkpoint_seconds, loggers=loggers, progress=not quiet,
    )  # fmt: skip
    _close(result, folder)


@app.command(rich_help_panel="Train")
def resume(
    folder: Annotated[Path, typer.Argument(help="Results folder of the run.")],
    steps: Annotated[str | None, typer.Option(help="Steps in all. [default: those first asked for]")] = None,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    quiet: Quiet = False,
) -> None:
    """Go on with a run from its newest checkpoint, exactly as if it had not stopped."""
    from ajax.training.driver import resume as run

    asked = None if steps is None else _count("--steps", steps)
    _close(run(folder, asked, checkpoint_seconds=checkpoint_seconds, progress=not quiet), folder)


@app.command(rich_help_panel="Look")
def evaluate(
    folder: Annotated[Path, typer.Argument(help="Results folder of a run.")],
    episodes: Annotated[int, typer.Option(help="Episodes for each seed.")] = 100,
) -> None:
    """Evaluate a run's newest checkpoint with its greedy policy."""
    from ajax.training.driver import load

    result = load(folder)
    outcome = result.evaluate(episodes)
    for name, row, finished in zip(result.lanes, outcome.returns, outcome.finished, strict=True):
        cut = f", {(~finished).sum()} of them cut" if not finished.all() else ""
        print(f"{name}: return {row.mean():.2f} +- {row.std():.2f} over {episodes} episodes{cut}")
    print(f"mean return {outcome.returns.mean():.2f}")


@app.command(rich_help_panel="Look")
def plot(
    folders: Annotated[list[Path], typer.Argument(help="Results folders.")],
    out: Annotated[Path, typer.Option(help="Image to write: .png, .pdf or .svg.")] = Path("curves.png"),
) -> None:
    """Draw learning curves side by side: the mean over seeds with a 95 % bootstrap interval."""
    from ajax.logging.plots import learning_curve

    learning_curve(_curves(folders), out, title="")
    print(out)


@app.command(rich_help_panel="Look")
def compare(
    a: Annotated[Path, typer.Argument(help="Results folder.")],
    b: Annotated[Path, typer.Argument(help="Results folder to compare it with.")],
) -> None:
    """Compare the final returns of two runs: interquartile mean and probability of improvement, with intervals."""
    from rich.console import Console
    from rich.table import Table

    from ajax.core.errors import ConfigError
    from ajax.logging.curves import read_curves
    from ajax.logging.statistics import compare as statistics

    for curves in (read_curves(a), read_curves(b)):
        if len(curves) > 1:
            raise ConfigError(f"compare takes runs without a sweep; one of these has {', '.join(curves)}.")
    (name_a, (_, returns_a)), (name_b, (_, returns_b)) = (*read_curves(a).items(), *read_curves(b).items())
    outcome = statistics(returns_a[:, -1], returns_b[:, -1])
    table = Table("final return", f"{name_a} ({outcome.n_runs[0]} seeds)", f"{name_b} ({outcome.n_runs[1]} seeds)")
    for statistic, (first, second) in outcome.rows.items():
        table.add_row(statistic, str(first), str(second))
    Console().print(table)
    print(f"probability that {name_a} is better than {name_b}: {outcome.improvement}")
    for name, failed in zip((name_a, name_b), outcome.n_failed, strict=True):
        if failed:
            print(f"{name}: {failed} seeds ended without a finite return and are left out")


@app.command(rich_help_panel="Look")
def video(
    folder: Annotated[Path, typer.Argument(help="Results folder of a run on a Gymnasium environment.")],
    out: Annotated[Path, typer.Option(help="GIF to write.")] = Path("episode.gif"),
    lane: Annotated[int, typer.Option(help="Which of its runs, counted from 0.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
) -> None:
    """Save one episode of the greedy policy as a GIF."""
    from ajax.training.driver import load
    from ajax.training.video import save_video

    print(save_video(load(folder), out, lane=lane, seed=seed))


@app.command(rich_help_panel="Find")
def agents(name: Annotated[str | None, typer.Argument(help="An agent, to list its fields.")] = None) -> None:
    """List the agents, or the fields of one."""
    from rich.console import Console
    from rich.table import Table

    from ajax.agents import MODULES, get
    from ajax.core.serialize import describe

    if name is None:
        table = Table("agent", "actions", "what it is")
        for known in MODULES:
            cls = get(known)
            module = sys.modules[cls.__module__].__doc__ or ""
            table.add_row(known, ", ".join(cls.acts), module.partition("\n")[0].partition(": ")[2])
    else:
        table = Table("field", "default", "meaning")
        for row in describe(get(name)()):
            table.add_row(*row)
    Console().print(table)


@app.command(rich_help_panel="Find")
def extensions(name: Annotated[str | None, typer.Argument(help="An extension, to list its fields.")] = None) -> None:
    """List the extensions, or the fields of one. Those that take an expert or data are given from Python."""
    import dataclasses
    import json

    from rich.console import Console
    from rich.table import Table

    from ajax.core.hooks import phases_of
    from ajax.core.serialize import to_dict
    from ajax.extensions import MODULES, get

    if name is None:
        table = Table("extension", "phases", "what it does")
        for known in MODULES:
            cls = get(known)
            table.add_row(known, ", ".join(phases_of(cls)), (cls.__doc__ or "").partition("\n")[0])
    else:
        table = Table("field", "default", "meaning")
        for f in dataclasses.fields(get(name)):  # type: ignore[arg-type]
            default = "required" if f.default is dataclasses.MISSING else json.dumps(to_dict(f.default))
            table.add_row(f.name, default, f.metadata["rule"].help)
    Console().print(table)


@app.command(rich_help_panel="Find")
def envs(pattern: Annotated[str, typer.Argument(help="Only names that contain this.")] = "") -> None:
    """List the environments that can be given by name."""
    from ajax.environments.registry import names

    for suite in names():
        matching = [name for name in suite.environments if pattern.lower() in name.lower()]
        if suite.missing or matching:
            print(f"{suite.name}: {suite.missing or ', '.join(matching)}")


@app.command("check-env", rich_help_panel="Find")
def check_env(env: Annotated[str, typer.Argument(help="A name, or path/to/file.py:Class.")]) -> None:
    """Say what is wrong with an environment, in sentences."""
    from ajax.environments.checker import check_env as check

    report = check(env)
    print(report)
    raise typer.Exit(1 if any(not fault.likely for fault in report.faults) else 0)


def main() -> None:
    """Run the command line: an error is one line on standard error; exit code 1, 2 for wrong usage, 70 for a defect."""
    debug = "--debug" in sys.argv
    warnings.formatwarning = lambda message, *_, **__: f"ajax: {message}\n"
    try:
        sys.exit(app(standalone_mode=False))
    except KeyboardInterrupt:
        _fail("interrupted before anything was saved.", 130)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, AjaxError | ImportError):
            _fail(str(error), 1)
        if isinstance(error, UsageError):
            usage = error.format_message().rstrip(".")
            _fail(f"{usage}. `ajax --help` lists the commands, `ajax COMMAND --help` their options.", 2)
        _fail(f"a defect of Ajax: {type(error).__name__}: {error} (`ajax --debug ...` shows where)", 70)


def _fail(text: str, code: int) -> NoReturn:
    print("ajax: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(code)


def _assignment(agent: Any, text: str) -> tuple[str, Any]:
    from ajax.core.serialize import parse

    name, value = _split("--set", text)
    return name, parse(agent, name, value)


def _extension(text: str) -> Any:
    """`NAME:FIELD=VALUE:FIELD=VALUE`; a colon within a value, as a schedule's, is not followed by a name and `=`."""
    from ajax.core.config import assign
    from ajax.core.serialize import parse
    from ajax.extensions import get

    name, *fields = re.split(r":(?=[a-z_.]+=)", text)
    made: Any = get(name)()
    pairs = [_split("--extension", field) for field in fields]
    return assign(made, {field: parse(made, field, value) for field, value in pairs})


def _values(agent: Any, text: str) -> tuple[str, list[Any]]:
    from ajax.core.serialize import parse

    name, values = _split("--sweep", text)
    return name, [parse(agent, name, value) for value in values.split(",") if value]


def _split(option: str, text: str) -> tuple[str, str]:
    from ajax.core.errors import ConfigError

    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{option} {text!r}: give NAME=VALUE.")
    return name, value


def _count(option: str, text: str) -> int:
    from ajax.core.errors import ConfigError
    from ajax.core.serialize import whole_number

    try:
        return whole_number(text)
    except ValueError:
        raise ConfigError(f"{option} {text!r} is not a whole number. Give one such as 50000, 200k or 1.5M.") from None


def _file_name(env: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in Path(env).name)


def _loggers(tensorboard: Path | None, wandb: str | None) -> list[Any]:
    from ajax.logging.backends import TensorBoardLogger, WandbLogger

    loggers: list[Any] = []
    if tensorboard is not None:
        loggers.append(TensorBoardLogger(tensorboard))
    if wandb is not None:
        loggers.append(WandbLogger(wandb))
    return loggers


def _curves(folders: list[Path]) -> dict[str, Any]:
    from ajax.logging.curves import read_curves

    return {label: curve for folder in folders for label, curve in read_curves(folder).items()}


def _close(result: Any, folder: Path) -> None:
    """Print where things are and how the run ended; exit non-zero where something was lost."""
    for lane, text in result.stopped.items():
        print(f"{result.lanes[lane]} stopped: {text}")
    for text in result.problems:
        print(f"not saved: {text}")
    if result.interrupted:
        saved = "" if result.problems else "; everything is saved"
        print(f"interrupted{saved}. Go on with: ajax resume {folder}")
        raise typer.Exit(128 + result.interrupted)
    print(f"results in {folder}, learning curve in {folder / 'curve.png'}")
    print(f"mean return {result.mean_return:.1f} at step {result.steps[-1]:,}")
    if result.problems or len(result.stopped) == len(result.lanes):
        raise typer.Exit(1)
