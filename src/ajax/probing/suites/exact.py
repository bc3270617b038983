"""How exact cases are put together: what is counted, stored or kept is read off finished runs and must be equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ajax.core.agent import Agent
from ajax.probing import Case, Query, Spec


class Fact(NamedTuple):
    """One exact reading.

    Attributes:
        name: as reports print it.
        right: the answer.
        wrong: answers under named mistakes.
        read: given what was trained and the index of a seed, returns the reading.
    """

    name: str
    right: float
    wrong: Mapping[str, float]
    read: Callable[[Any, int], Any]


def exact_case(
    id: str, title: str, budget: int, trained: Callable[[int, Sequence[int]], Any], facts: Sequence[Fact]
) -> Case:
    """Return a case that reads `facts` off what `trained(budget, seeds)` returns."""

    def found(budget: int, seeds: Sequence[int]) -> np.ndarray:
        runs = trained(budget, seeds)
        return np.array([[fact.read(runs, lane) for fact in facts] for lane in range(len(seeds))], float)

    queries = tuple(Query(fact.name, fact.right, dict(fact.wrong), "exact") for fact in facts)
    return Case(id, queries, found, budget, title=title)


def train(agent: Agent, spec: Spec, budget: int, seeds: Sequence[int], **options: Any) -> Any:
    """Train quietly, with two reports of training episodes; returns the `ajax.Result`."""
    return agent.train(
        spec.env(), budget, seeds=list(seeds), **{"evaluations": 2, "episodes": 0, "progress": False, **options}
    )


def updates(opt: Any) -> int:
    """Return the number of steps that an optimizer's state has counted."""
    import jax

    counts = [leaf for path, leaf in jax.tree_util.tree_leaves_with_path(opt) if "count" in jax.tree_util.keystr(path)]
    return int(np.max(counts[0]))


def same(a: Any, b: Any) -> bool:
    """Return whether two pytrees of arrays (random keys included) are equal, bit for bit."""
    import jax

    def raw(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(raw(x), raw(y), equal_nan=False) for x, y in pairs)
