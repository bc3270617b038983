"""What a recurrent run keeps and learns from, exactly: every carry is its own episode's, and so is every row's past.

An agent acts for some steps in a task with both kinds of end, its networks as they were made. What they should remember
is found by stepping each of them alone through each episode.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ajax.networks.memory import GRU
from ajax.probing import Case
from ajax.probing.suites.bookkeeping.discrete import WALK
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.exact import Fact, exact_case, same
from ajax.probing.suites.presets import PRESETS, SMALL, make
from ajax.probing.suites.split_run.facts import DICE, split

STEPS, N_ENVS = 12, 2
SIZE, LENGTH, BURN_IN = 4, 4, 4  # a burn-in holds a whole episode of three steps, and one step more
CLOSE = 1e-4

Remembered = dict[str, np.ndarray]
"""By network: what it remembers (steps, n_envs, size)."""


class Acted(NamedTuple):
    """What an agent kept and made of its memories, and what it should have.

    Attributes:
        rows: the transitions (steps, n_envs, ...), with what was kept of memories.
        carry: what the run holds in the end.
        after: what should be remembered after each row's observation.
        batch: by network, what it makes of a batch's rows and of what they led to (rows, size).
        expected: the same from each network stepped alone.
        evaluated: what the greedy policy remembers after two steps of an evaluation.
    """

    rows: Any
    carry: Remembered
    after: Remembered
    batch: dict[str, tuple[np.ndarray, np.ndarray]]
    expected: dict[str, tuple[np.ndarray, np.ndarray]]
    evaluated: Remembered


def acted(agent: Any, spec: Any, seeds: Sequence[int]) -> list[Acted]:
    """Act, cut a batch out of the rows as the agent's loop does, and step the networks alone; for every seed."""
    import jax
    import jax.numpy as jnp

    from ajax.core.keys import seed_key
    from ajax.core.records import Clock, Inputs
    from ajax.networks.encoder import Encoder
    from ajax.training import memory
    from ajax.training.chunk import begin
    from ajax.training.collect import interact, step_keys
    from ajax.training.evaluate import greedy, start_of
    from ajax.training.run import Task

    task, clock = Task(spec.env(), N_ENVS), Clock.start()
    on_policy = agent.loop == "on_policy"

    @jax.jit
    def collect(agent: Any, key: jax.Array) -> tuple[Any, Any, Any, Any]:
        """The run, its rows, other parameters, and what an evaluation remembers after two steps."""
        run, _ = begin(agent, task, key)

        def step(run: Any, keys: Any) -> Any:
            run, row, _ = interact(agent, task, run, keys, clock, True)
            return run, row

        run, rows = jax.lax.scan(step, run, step_keys(key, STEPS, N_ENVS))
        policy, kept = greedy(agent, task, run), start_of(agent, task, run, N_ENVS)
        for t in range(2):  # no episode of the walk is shorter
            _, _, kept = policy(key, rows.now.obs[t], kept, jnp.full(N_ENVS, float(t)), rows.reward[:t].sum(0))
        return run, rows, agent.init(task.spec, jax.random.fold_in(key, 1)), kept[1]

    @jax.jit
    def batch(rows: Any, nets: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        if on_policy:
            pieces, n = memory.cut(agent, rows)
            b = memory.take(agent, pieces, jnp.arange(n))
        else:
            b = memory.unrolled(agent, jax.tree.map(_windows, memory.stored(rows)))

        def made(name: str, x: Inputs) -> Any:
            return Encoder(agent.torso, name=name).apply({"params": nets[name]}, x)

        return {name: (made(name, b.now), made(name, b.next)) for name in nets}

    def each(seed: int) -> Acted:
        run, rows, other, evaluated = collect(agent, seed_key(seed))
        # a replay is learned from by other parameters than it was collected by: the burn-in makes up for that
        nets = memory.encoders(agent, run.agent if on_policy else other)
        after, _ = alone(memory.encoders(agent, run.agent), rows)
        _, features = alone(nets, rows)
        place = _in_pieces if on_policy else _after_burn_in
        return Acted(rows, run.carry, after, batch(rows, nets), jax.tree.map(place, features), evaluated)

    return [each(seed) for seed in seeds]


def alone(nets: dict[str, Any], rows: Any) -> tuple[Remembered, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Each network through each episode: carries after each row, and features of each row and of what it led to."""
    now, following = np.asarray(rows.now.obs), np.asarray(rows.next.obs)
    ended = np.maximum(rows.terminated, rows.truncated) > 0
    shape = STEPS, N_ENVS, SIZE
    carries, features, then = ({n: np.zeros(shape) for n in nets} for _ in range(3))
    for name, params in nets.items():
        for env in range(N_ENVS):
            h = np.zeros(SIZE)
            for t in range(STEPS):
                h = gru(params["cell"], h, now[t, env])
                carries[name][t, env] = features[name][t, env] = h
                then[name][t, env] = gru(params["cell"], h, following[t, env])
                h = np.zeros(SIZE) if ended[t, env] else h
    return carries, {name: (features[name], then[name]) for name in nets}


def gru(p: Any, h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One step of a gated recurrent unit, from its equations (Cho et al. 2014, with a bias inside the reset)."""

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ np.asarray(p[name]["kernel"]) + np.asarray(p[name].get("bias", 0.0))

    r = 1 / (1 + np.exp(-dense("ir", x) - dense("hr", h)))
    z = 1 / (1 + np.exp(-dense("iz", x) - dense("hz", h)))
    return (1 - z) * np.tanh(dense("in", x) + r * dense("hn", h)) + z * h


def _windows(x: Any) -> Any:
    """(steps, n_envs, ...) as all sequences that a replay could give, (burn_in + length, sequences, ...)."""
    length = BURN_IN + LENGTH
    return x[np.add.outer(np.arange(length), np.arange(STEPS - length + 1))].reshape(length, -1, *x.shape[2:])


def _after_burn_in(x: np.ndarray) -> np.ndarray:
    """(steps, n_envs, size) of the rows that are learned from, (rows, size)."""
    return _windows(x)[BURN_IN:].reshape(-1, x.shape[-1])


def _in_pieces(x: np.ndarray) -> np.ndarray:
    """(steps, n_envs, size) in the order of sequences cut from a rollout, (rows, size)."""
    return x.reshape(-1, LENGTH, *x.shape[1:]).swapaxes(0, 1).reshape(-1, x.shape[-1])


def _same(found: Any, expected: Any) -> bool:
    import jax

    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return all(np.abs(np.asarray(a) - np.asarray(b)).max() < CLOSE for a, b in pairs)


def _first(rows: Any) -> np.ndarray:
    """Which rows begin an episode (steps, n_envs)."""
    ended = np.maximum(rows.terminated, rows.truncated)
    return np.concatenate([np.ones_like(ended[:1]), ended[:-1]])


def _known_before(acted: Acted) -> tuple[Any, Any]:
    """What was kept with the rows that begin no episode, and what should have been."""
    inside = _first(acted.rows)[1:] == 0
    kept = {name: np.asarray(c)[1:][inside] for name, c in acted.rows.now.carry.items()}
    return kept, {name: c[:-1][inside] for name, c in acted.after.items()}


FACTS: dict[str, Callable[[Acted], bool]] = {
    "where episodes begin": lambda a: np.array_equal(np.asarray(a.rows.now.reset), _first(a.rows)),
    "carry before each row": lambda a: _same(*_known_before(a)),
    "carry after each row": lambda a: _same(a.rows.next.carry, a.after),
    "carry of the run": lambda a: _same(a.carry, {name: c[-1] for name, c in a.after.items()}),
    "carry in an evaluation": lambda a: _same(a.evaluated, {name: c[1] for name, c in a.after.items()}),
    "past of a batch's rows": lambda a: _same(
        {name: now for name, (now, _) in a.batch.items()}, {name: now for name, (now, _) in a.expected.items()}
    ),
    "past of what they led to": lambda a: _same(
        {name: then for name, (_, then) in a.batch.items()}, {name: then for name, (_, then) in a.expected.items()}
    ),
}
"""What is read, and whether all is well."""

ACTING = ("carry before each row", "carry after each row", "carry of the run")
LEARNING = ("past of a batch's rows", "past of what they led to")
SHOWS: dict[str, tuple[str, ...]] = {
    "memory restarted elsewhere": ("where episodes begin", *ACTING, *LEARNING),
    "memory never restarted": (*ACTING, *LEARNING),
    "memory not restarted at a row": (*ACTING, "past of a batch's rows"),
    "memory reset every step": (*ACTING, "carry in an evaluation", *LEARNING),
    "networks share one memory": (*ACTING, "carry in an evaluation", *LEARNING),
    "memory not carried on": ACTING,
    "memory of another moment kept with a row": ("carry before each row",),
    "memory dropped in evaluations": ("carry in an evaluation",),
    "sequences without their past": LEARNING,
    "batch without its rows' past": ("past of a batch's rows",),
    "next value without what came before": ("past of what they led to",),
}
"""What each mistake shows in."""


def facts_case(name: str) -> Case:
    """The case of an agent, on the walk whose episodes end in both ways."""
    agent: Any = PRESETS[name]
    on_policy = agent.loop == "on_policy"
    memory = GRU(size=SIZE, length=LENGTH, burn_in=0 if on_policy else BURN_IN)
    loop = "rollout" if on_policy else "replay"
    sizes = {"n_envs": N_ENVS, **({"n_steps": STEPS, "n_minibatches": 1} if on_policy else {})}
    made: Any = dataclasses.replace(
        agent,
        torso=dataclasses.replace(SMALL, memory=memory),
        **{loop: dataclasses.replace(vars(agent)[loop], **sizes)},
    )
    spec = dataclasses.replace(WALK, box=BOX, edges=(0.0, 1.5)) if "continuous" in agent.acts else WALK

    def found(budget: int, seeds: Sequence[int]) -> list[Acted]:
        return acted(made, spec, seeds)

    def reader(good: Callable[[Acted], bool]) -> Callable[[Any, int], Any]:
        return lambda runs, lane: good(runs[lane])

    facts = [
        Fact(fact, 1, {mistake: 0 for mistake, shown in SHOWS.items() if fact in shown}, reader(good))
        for fact, good in FACTS.items()
    ]
    return exact_case(f"q2-{name}", f"{name}, what is remembered", STEPS * N_ENVS, found, facts)


def resume_case(name: str) -> Case:
    """A run with a memory, saved in the middle of episodes, restored, and resumed."""
    loop = {"rollout.n_steps": 8} if PRESETS[name].loop == "on_policy" else {}
    torso = dataclasses.replace(SMALL, memory=GRU(size=SIZE, length=LENGTH))
    agent = make(name, {"torso": torso, **loop}).agent
    facts = [
        Fact(
            "memories at the seam",
            1,
            {"memories lost": 0},
            lambda s, lane: bool(s.saved[lane].carry) and same(s.saved[lane].carry, s.restored[lane].carry),
        ),
        Fact(
            "run at the end",
            1,
            {"memories lost": 0},
            lambda s, lane: same(s.whole.run(lane), s.resumed.run(lane)),
        ),
    ]
    budget = 320
    return exact_case(
        f"p4-{name}-memory",
        f"{name} with a memory, resumed",
        budget,
        lambda b, seeds: split(agent, DICE, b, seeds),
        facts,
    )


CASES = (
    *(facts_case(name) for name in ("APG", "ASAC", "DQN", "IQL", "PPO", "REDQ", "SAC", "TD3")),
    *(resume_case(name) for name in ("DQN", "PPO")),
)
