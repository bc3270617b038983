"""What a training returns: the learning curves, and the runs themselves to evaluate, save or train on."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.buffers.dataset import Dataset, concatenate
from ajax.buffers.replay import Store
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.expert import Expert
from ajax.core.keys import seed_key, stream
from ajax.core.records import Clock
from ajax.core.spaces import Space, to_box
from ajax.logging.folder import RunFolder
from ajax.training import normalise
from ajax.training.commands import to_follow, told
from ajax.training.memory import Carry, nothing, remember

if TYPE_CHECKING:
    from ajax.training.evaluate import Evaluation
    from ajax.training.session import Session


class Trained(Expert):
    """A trained agent as an expert: its greedy policy, its statistics as they were.

    Attributes:
        agent: configuration.
        state: of the agent.
        statistics: of normalization.
        space: the environment's actions.
    """

    agent: Any
    state: Any
    statistics: normalise.Statistics
    space: Space = struct.field(pytree_node=False)

    def init(self) -> Carry:
        """What its networks remember before a first observation."""
        return nothing(self.agent, self.state, 1)

    def act(self, memory: Carry, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Carry]:
        """The greedy action, and what its networks remember."""
        clock = Clock.start()
        x = normalise.inputs(self.statistics, obs[None]).replace(carry=memory or None)
        action, _ = self.agent.act(self.state, x, key, clock, False)
        return to_box(self.space, action)[0], remember(self.agent, self.state, x)


class Result:
    """Learning curves and trained runs of several lanes (seeds, or values times seeds).

    Attributes:
        steps: environment steps at every evaluation (evaluations,).
        returns: mean return of each evaluation's episodes (lanes, evaluations), in the environment's units.
        lengths: their mean length in steps (lanes, evaluations).
        metrics: name: mean of a training metric since the evaluation before (lanes, evaluations).
        seeds: the seed of every lane.
        lanes: what a lane is called in tables and plots.
        stopped: lane: why it stopped before its end (a metric that was no longer finite).
        interrupted: number of the signal (SIGINT, SIGTERM) that cut training short; 0 if none did.
        problems: what could not be written to the results folder (a full disk), one sentence each.
    """

    def __init__(self, session: Session):
        self.session = session
        history = session.history
        self.steps = np.array([row.step for row in history], np.int64)
        self.returns = _columns([row.returns for row in history], session.lanes.n)
        self.lengths = _columns([row.lengths for row in history], session.lanes.n)
        names = sorted({name for row in history for name in row.metrics})
        nothing = np.full(session.lanes.n, np.nan)
        self.metrics = {
            name: _columns([row.metrics.get(name, nothing) for row in history], session.lanes.n) for name in names
        }
        self.seeds, self.lanes = list(session.plan.seeds), list(session.plan.names)
        self.stopped, self.interrupted = dict(session.stopped), session.interrupted
        self.problems = list(session.folder.problems) if session.folder else []

    def __repr__(self) -> str:
        agent = type(self.session.plan.agents[0]).__name__
        last = f"{self.mean_return:.1f}" if len(self.steps) else "none yet"
        return f"<{agent} on {self.session.plan.env_name}: {len(self.lanes)} runs, mean return {last}>"

    @property
    def agent(self) -> Any:
        """The configuration (of the first lane, in a sweep)."""
        return self.session.plan.agents[0]

    @property
    def mean_return(self) -> float:
        """Mean over the lanes that did not stop early of the last evaluation's return."""
        kept = [i for i in range(len(self.lanes)) if i not in self.stopped]
        return float(np.mean(self.returns[kept, -1])) if kept and len(self.steps) else float("nan")

    def run(self, lane: int = 0) -> Any:
        """The run of one lane: the pytree `ajax.training.run.Run`, with the agent's state in `.agent`."""
        return self.session.lanes.run(lane)

    def act(self, obs: Any, lane: int = 0) -> np.ndarray:
        """Greedy actions, in the environment's units, for raw observations (batch, *shape).

        They are the agent's own, before what extensions make of them; a network with a memory takes each observation
        for the first of an episode (`expert` remembers), and an agent that follows commands is asked for what it is at
        an evaluation's start.
        """
        run, agent = self.run(lane), self.session.plan.agents[lane]
        clock = Clock.start()
        x, none = normalise.inputs(run.statistics, jnp.asarray(obs)), jnp.zeros(len(obs))
        x = told(x, run.statistics, to_follow(run.commands, len(obs)), none, none)
        action, _ = agent.act(run.agent, x, stream(seed_key(0), "act"), clock, False)
        return np.asarray(to_box(self.session.lanes.task.env.action_space, action))

    def expert(self, lane: int = 0) -> Expert:
        """The greedy policy of one lane, without what extensions make of its actions, as an expert.

        Raises:
            CapabilityError: the agent follows commands, which depend on rewards that an expert is not told.
        """
        run, agent = self.run(lane), self.session.plan.agents[lane]
        if agent.loop == "episodic":
            raise CapabilityError(
                f"{type(agent).__name__} can't be an expert: what it does depends on what its episode has earned so"
                " far, which an expert is not told."
            )
        return Trained(
            agent=agent, state=run.agent, statistics=run.statistics, space=self.session.lanes.task.env.action_space
        )

    def dataset(self, lane: int = 0) -> Dataset:
        """What one lane's replay holds, to learn from offline: raw transitions, environment by environment, in order.

        Raises:
            ConfigError: the run has no replay, or nothing is in it yet.
        """
        from ajax.training.demonstrate import dataset_of

        store = self.run(lane).store
        if not isinstance(store, Store) or not int(store.size):
            raise ConfigError(
                f"{self!r} has no transitions in a replay: agents that learn from a replay keep one while they are"
                " trained in an environment."
            )
        n_rows, n_envs = store.rows.reward.shape
        order = (int(store.at) - int(store.size) + np.arange(int(store.size))) % n_rows
        rows = jax.tree.map(lambda x: np.asarray(x)[order], store.rows)
        space = self.session.lanes.task.env.action_space
        return concatenate([dataset_of(jax.tree.map(itemgetter((slice(None), i)), rows), space) for i in range(n_envs)])

    def rows(self) -> list[dict[str, Any]]:
        """The curves as rows: step, lane, seed, return, length and every metric."""
        return self.session.rows()

    def frame(self) -> Any:
        """The curves as a pandas DataFrame, one row an evaluation and lane.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("frame() needs pandas: pip install pandas. rows() gives the same without it.") from error
        return pandas.DataFrame(self.rows())

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the learning curve: the mean over seeds with a 95 % bootstrap interval; returns the figure.

        Args:
            path: a PNG (or PDF, SVG) to write it to.
        """
        from ajax.logging.plots import learning_curve

        return learning_curve(self.session.curves(), path, title=self.session.plan.title)

    def evaluate(self, episodes: int = 100) -> Evaluation:
        """Run whole episodes of the greedy policy; arrays (lanes, episodes)."""
        return self.session.evaluate(episodes)

    def save(self, folder: str | Path) -> Path:
        """Write a results folder: config, curves, plot and a checkpoint to resume from; returns its path.

        Raises:
            FolderInUse: the folder holds another run.
            CheckpointError: it can't be written.
        """
        return self.session.save_to(folder)

    def resume(self, steps: int, *, progress: bool = True) -> Result:
        """Train on until `steps` environment steps in all; the schedules keep the first call's horizon.

        What the first call sent to loggers is complete; this one writes to the results folder alone.

        Raises:
            ConfigError: fewer steps than were already taken.
            FolderInUse: another process runs this folder by now.
        """
        session = self.session
        if session.folder is None:
            return session.train_to(steps, progress=progress)
        with RunFolder(session.folder.path, resume=True) as folder:
            session.record(folder, (), session.checkpoint_seconds)
            return session.train_to(steps, progress=progress)


def _columns(rows: list[np.ndarray], n: int) -> np.ndarray:
    return np.stack(rows, 1) if rows else np.zeros((n, 0))
