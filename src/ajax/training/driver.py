"""`train`, `resume` and `evaluate`: from a configuration and an environment to a `Result`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from ajax.buffers.dataset import Dataset
from ajax.core.agent import Agent, Sweep
from ajax.core.errors import CheckpointError, ConfigError
from ajax.core.hooks import Extension, check_extensions
from ajax.core.spaces import Discrete
from ajax.environments import registry
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.environments.wrappers import ActionRepeat, FlattenObservation, TimeLimit, time_limit
from ajax.logging import checkpoint
from ajax.logging.backends import Logger
from ajax.logging.folder import RunFolder, read_config
from ajax.training import episodic, memory, slopes
from ajax.training.chunk import loop_of
from ajax.training.evaluate import Evaluation
from ajax.training.host import HostLanes
from ajax.training.lanes import Lanes
from ajax.training.normalise import Normalize
from ajax.training.plan import Plan, lanes_of
from ajax.training.result import Result
from ajax.training.run import Task
from ajax.training.session import Session

LONGEST_EPISODE = 10_000
"""Steps after which an evaluation cuts an episode of an environment without a time limit."""


def train(
    agent: Agent | Sweep,
    env: Any,
    steps: int,
    *,
    seeds: int | Iterable[int] = 1,
    horizon: int | None = None,
    evaluations: int = 20,
    episodes: int = 16,
    normalize_observations: bool = False,
    normalize_rewards: bool = False,
    reward_normalization_gamma: float | None = None,
    episode_length: int | None = None,
    action_repeat: int = 1,
    extensions: Sequence[Extension] = (),
    on_nan: Literal["stop", "warn"] = "stop",
    dataset: Dataset | None = None,
    start: Result | None = None,
    out: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    loggers: Sequence[Logger] = (),
    progress: bool = True,
) -> Result:
    """Train an agent: every seed (and every value of a sweep) by one compiled program.

    Args:
        agent: the configuration, such as `PPO(gamma=0.98)`, or a sweep: every combination of its values is trained
            with every seed.
        env: a name (`"CartPole-v1"`, `"brax:ant"`, `"gymnasium:LunarLander-v3"`), an object of the `Env` protocol,
            or a `gymnasium.Env`.
        steps: environment steps of each seed. A tick is never cut, so that fewer may be taken, by less than a
            rollout; never more.
        seeds: how many (then 0, 1, ...), or the seeds themselves.
        horizon: environment steps at which schedules end; `steps` unless the run is to be resumed beyond them.
        evaluations: how often to report, evenly spread, the last at the end.
        episodes: whole episodes in each evaluation; 0: none, the training episodes are reported.
        normalize_observations: shift and scale observations by running statistics.
        normalize_rewards: scale the rewards that the agent learns from; those reported stay as they are.
        reward_normalization_gamma: discount of the sums whose deviation scales rewards; None: the rewards' own.
        episode_length: cut episodes (truncated) after this many steps.
        action_repeat: repeat each action this often, the rewards summed; a step is then one action.
        extensions: folded into the update in this order.
        on_nan: when a number is no longer finite, `"stop"` that seed (the others go on) or only `"warn"`.
        dataset: learn offline, from these transitions alone: a step is then an update, and `env` is what the agent
            is evaluated on.
        start: begin each run with the networks of the same run of another training: one from a dataset, say, to go on
            in the environment. Its replay and its counters are left behind.
        out: results folder; written as training goes, and what `resume` takes.
        checkpoint_seconds: least time between two checkpoints.
        loggers: also send every reported number to these.
        progress: show a bar.

    Returns:
        The curves and the trained runs. SIGINT and SIGTERM end training after the current chunk, with all saved.

    Raises:
        ConfigError, SpaceError, UnknownName, CapabilityError, EnvironmentFault: before anything is compiled, saying
            what was given and what is allowed.
        FolderInUse, CheckpointError: `out` can't be used.
    """
    made = registry.make(env)
    agents, lane_seeds, labels = lanes_of(agent if isinstance(agent, Sweep) else Sweep(agent, {}), seeds)
    limit = episode_length or time_limit(made) or LONGEST_EPISODE
    plan = Plan(
        agents=agents,
        seeds=lane_seeds,
        labels=labels,
        env_id=registry.identify(env),
        env_name=registry.title(env),
        steps=steps,
        horizon=steps if horizon is None else horizon,
        evaluations=evaluations,
        episodes=episodes,
        limit=limit,
        normalize=Normalize(
            observations=normalize_observations,
            rewards=normalize_rewards,
            reward_gamma=reward_normalization_gamma or 0.0,
        ),
        episode_length=episode_length,
        action_repeat=action_repeat,
        on_nan=on_nan,
        offline=dataset is not None,
        extensions=tuple(extensions),
    )
    task = make_task(plan, made, dataset)
    with contextlib.ExitStack() as stack:
        for logger in loggers:
            stack.callback(logger.close)
        folder = stack.enter_context(RunFolder(out)) if out is not None else None
        session = Session(plan, engine(plan, task))
        if folder and start is None:  # from here on a run that is killed begins again as it began
            folder.write_config(plan.to_json())
        try:
            session.begin(None if start is None else start.session)
        except BaseException:
            if folder:  # nothing was trained: the folder may be used again
                folder.config_path.unlink(missing_ok=True)
            raise
        if folder and start is not None:
            folder.write_config(plan.to_json())
        session.record(folder, tuple(loggers), checkpoint_seconds)
        return session.train_to(plan.steps, progress=progress)


def resume(
    out: str | Path,
    steps: int | None = None,
    *,
    env: Any = None,
    agent: Agent | None = None,
    dataset: Dataset | None = None,
    extensions: Sequence[Extension] | None = None,
    checkpoint_seconds: float = 30.0,
    loggers: Sequence[Logger] = (),
    progress: bool = True,
) -> Result:
    """Go on with the run in a results folder, from its newest checkpoint, exactly as if it had not stopped.

    Args:
        out: the folder.
        steps: environment steps in all; those last asked for unless given.
        env: the environment, where it was given as an object that `config.json` can't name.
        agent: the agent, again, where it holds objects (an expert) that `config.json` can't name.
        dataset: what an offline run learns from, again.
        extensions: the stack, again, where it holds objects (experts, datasets) that `config.json` can't name.
        checkpoint_seconds, loggers, progress: as for `train`.

    Raises:
        CheckpointError: there is nothing to resume there, or it does not fit.
        FolderInUse: another process runs it.
    """
    with contextlib.ExitStack() as stack:
        for logger in loggers:
            stack.callback(logger.close)
        folder = stack.enter_context(RunFolder(out, resume=True))
        session = open_session(folder.path, env, dataset, extensions, agent)
        session.record(folder, tuple(loggers), checkpoint_seconds)
        return session.train_to(session.target if steps is None else steps, progress=progress)


def load(
    out: str | Path, *, env: Any = None, agent: Agent | None = None, extensions: Sequence[Extension] | None = None
) -> Result:
    """Read a results folder: its curves and its trained runs, without training on.

    Args:
        out: the folder.
        env, agent, extensions: as for `resume`.

    Raises:
        CheckpointError: there is none, or it does not fit.
    """
    return Result(open_session(Path(out), env, extensions=extensions, agent=agent))


def evaluate(
    out: str | Path,
    *,
    episodes: int = 100,
    env: Any = None,
    agent: Agent | None = None,
    extensions: Sequence[Extension] | None = None,
) -> Evaluation:
    """Evaluate the newest checkpoint of a results folder on fresh episodes; arrays are (lanes, episodes).

    Args:
        out: the folder.
        episodes: how many, of every lane.
        env, agent, extensions: as for `resume`.

    Raises:
        CheckpointError: there is none, or it does not fit.
    """
    if episodes < 1:
        raise ConfigError(f"episodes={episodes} must be at least 1.")
    return open_session(Path(out), env, extensions=extensions, agent=agent).evaluate(episodes)


def open_session(
    folder: Path,
    env: Any = None,
    dataset: Dataset | None = None,
    extensions: Sequence[Extension] | None = None,
    agent: Agent | None = None,
) -> Session:
    """The session of a results folder, where its newest checkpoint left it, or at its start if there is none yet.

    Only reads, so that a run that is under way may be looked at.
    """
    plan = Plan.from_json(read_config(folder), extensions, agent)
    if env is None and plan.env_id is None:
        raise CheckpointError(
            f"{folder} was trained on {plan.env_name}, an object made in Python. Open it from Python:"
            " ajax.resume(folder, env=...)."
        )
    task = make_task(plan, registry.make(plan.env_id if env is None else env), dataset)
    session = Session(plan, engine(plan, task))
    saved = folder / "checkpoints"
    if checkpoint.checkpoints(saved):
        session.restore(*checkpoint.load(saved, like=session.lanes.expected()))
    else:
        session.begin()
    return session


def make_task(plan: Plan, env: Any, dataset: Dataset | None = None) -> Task:
    """The environment with the plan's options, checked against the agent.

    Raises:
        SpaceError: the agent can't act in it.
        CapabilityError: an extension, a dataset or the environment does not fit the agent.
        ConfigError: the dataset does not fit the environment.
    """
    agent: Any = plan.agents[0]
    env = with_options(env, plan.episode_length, plan.action_repeat)
    n_envs = agent.rollout.n_envs if agent.loop == "on_policy" else agent.replay.n_envs
    task = Task(env, n_envs, plan.normalize, offline=plan.offline)
    agent.check_spaces(task.spec)
    slopes.check(agent, env)
    extensions = (*plan.extensions, *agent.brings())
    check_extensions(agent, extensions, loop_of(agent, plan.offline).FOLDS)
    memory.check(agent, plan.offline, plan.extensions)
    if agent.loop == "episodic":
        episodic.check(agent, env)
    task = task.replace(extensions=tuple(extension.bind(task.spec) for extension in extensions))
    return task if dataset is None else task.replace(dataset=dataset.store(task.spec))


def with_options(env: Any, episode_length: int | None, action_repeat: int) -> Any:
    """The environment with its wrappers."""
    if isinstance(env, GymnasiumEnv):
        return env.with_options(episode_length, action_repeat)
    env = ActionRepeat(env, action_repeat) if action_repeat > 1 else env
    env = TimeLimit(env, episode_length) if episode_length is not None else env
    return FlattenObservation(env) if isinstance(env.observation_space, Discrete) else env


def engine(plan: Plan, task: Task) -> Any:
    """What advances the runs: compiled whole, or a host loop around a Gymnasium environment."""
    kind = HostLanes if isinstance(task.env, GymnasiumEnv) else Lanes
    return kind(list(plan.agents), list(plan.seeds), task, float(plan.horizon), plan.limit)
