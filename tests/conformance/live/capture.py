"""Records made now: an installed library's update, run from one state on the same batches and draws in both precisions.

What a record holds is what `tests/conformance/data` holds, by the same names, so that the same checks read it.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch

from tests.conformance.kit import STAGES, Record
from tests.conformance.submaps import Flat

UPDATES = max(STAGES)


class Live(Record):
    """A record made of arrays in memory."""

    def __init__(self, config: dict[str, Any], arrays: Flat):
        self.config, self.arrays = config, arrays


class Original(abc.ABC):
    """A library's agent whose update is recorded. Subclasses make it in float32 and with the same numbers each time.

    Attributes:
        config: its settings, by the names that the record's check asks for.
        warmup: updates before the first that is recorded, so that no moment of Adam's is 0.
        reached: states within an update, by their names in a record.
    """

    config: dict[str, Any]
    warmup: int = 6

    def __init__(self) -> None:
        self.reached: dict[str, Flat] = {}

    @abc.abstractmethod
    def state(self) -> Flat:
        """All that an update may change, by the record's names."""

    @abc.abstractmethod
    def in_float64(self) -> None:
        """Go on in float64 from the same numbers."""

    @abc.abstractmethod
    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """A batch and the standard normal numbers (or permutations) that an update draws, by the record's names."""

    @abc.abstractmethod
    def update(self, batch: Flat, draws: Flat) -> None:
        """The library's own update."""


def record(make: Callable[[], Original], seed: int = 0) -> Live:
    """The state before, and after 1, 2 and 4 updates, in float32 and in float64, with the batches and the draws.

    Args:
        make: makes the agent.
        seed: of the batches and draws.
    """
    arrays: Flat = {}
    for prefix in ("", "f64/"):
        rng, original = np.random.default_rng(seed), make()
        for _ in range(original.warmup):
            original.update(*original.inputs(rng))
        arrays |= named("before", original.state())
        if prefix:
            original.in_float64()
        for u in range(UPDATES):
            batch, draws = original.inputs(rng)
            original.reached.clear()
            original.update(batch, draws)
            arrays |= {f"batch/{name}/{u}": value for name, value in batch.items()}
            arrays |= {f"draw/{name}/{u}": value for name, value in draws.items()}
            stages = original.reached if u == 0 else {}
            if u + 1 in STAGES:
                stages = stages | {STAGES[u + 1]: original.state()}
            for stage, flat in stages.items():
                arrays |= named(f"{prefix}{stage}", flat)
    return Live(original.config, arrays)


def named(prefix: str, flat: Flat) -> Flat:
    """A state under its prefix, copied."""
    return {f"{prefix}/{name}": np.array(value) for name, value in flat.items()}


def transitions(rng: np.random.Generator, n: int, obs: int, action: int, n_actions: int = 0) -> Flat:
    """A batch of transitions in float32, a third of them terminal; `n_actions`: indices instead of vectors."""
    actions = rng.integers(n_actions, size=n) if n_actions else rng.uniform(-1, 1, (n, action)).astype(np.float32)
    return {
        "obs": rng.normal(size=(n, obs)).astype(np.float32),
        "action": actions,
        "next_obs": rng.normal(size=(n, obs)).astype(np.float32),
        "reward": rng.normal(size=n).astype(np.float32),
        "done": (rng.uniform(size=n) < 1 / 3).astype(np.float32),
    }


class TorchOriginal(Original):
    """An agent of PyTorch.

    Attributes:
        params: its parameters by name; those that end in `/kernel` are kept (out, in), and recorded (in, out).
        optimizers: by name; each holds some of the parameters.
    """

    params: dict[str, torch.Tensor]
    optimizers: dict[str, torch.optim.Optimizer]

    def state(self) -> Flat:
        """Parameters, and Adam's moments and step counts."""
        flat = {name: _array(name, tensor) for name, tensor in self.params.items()}
        for opt, optimizer in self.optimizers.items():
            for name, tensor in self.params.items():
                moments = optimizer.state.get(tensor)
                if moments:
                    flat[f"{opt}/m/{name}"] = _array(name, moments["exp_avg"])
                    flat[f"{opt}/v/{name}"] = _array(name, moments["exp_avg_sq"])
                    flat[f"{opt}/step"] = np.int64(moments["step"].item())
        return flat

    def in_float64(self) -> None:
        """Parameters and moments in place."""
        for tensor in self.params.values():
            tensor.data, tensor.grad = tensor.data.double(), None
        for optimizer in self.optimizers.values():
            for moments in optimizer.state.values():
                for name in ("exp_avg", "exp_avg_sq"):
                    moments[name] = moments[name].double()

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return next(iter(self.params.values())).dtype

    def tensor(self, array: np.ndarray) -> torch.Tensor:
        """An array of a batch or a draw; whole numbers stay so."""
        tensor = torch.as_tensor(array)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def shake(self, seed: int = 1) -> None:
        """Move every parameter a little, so that no bias is 0 and no target equals its network."""
        rng = np.random.default_rng(seed)
        for tensor in self.params.values():
            tensor.data += torch.as_tensor(rng.normal(scale=0.05, size=tensor.shape), dtype=tensor.dtype)


def layers(prefix: str, network: torch.nn.Module, names: list[str] | None = None) -> dict[str, torch.Tensor]:
    """The parameters of a network's linear layers in their order, called `PREFIX/layer0/kernel` and so on."""
    linear = [m for m in network.modules() if isinstance(m, torch.nn.Linear)]
    names = names or [f"layer{i}" for i in range(len(linear))]
    params: dict[str, torch.Tensor] = {}
    for name, layer in zip(names, linear, strict=True):
        params |= {f"{prefix}/{name}/kernel": layer.weight, f"{prefix}/{name}/bias": layer.bias}
    return params


def _array(name: str, tensor: torch.Tensor) -> np.ndarray:
    array = tensor.detach().numpy()
    return array.T if name.endswith("/kernel") else array


@contextlib.contextmanager
def answers(owner: Any, name: str, draw: Callable[..., Any], draws: list[Any]) -> Iterator[None]:
    """Let `owner.name`, which draws random numbers, use these instead, one after another.

    Args:
        owner, name: the function.
        draw: (number, *arguments of the function): what it returns.
        draws: what is drawn.

    Raises:
        AssertionError: fewer or more were drawn.
    """
    left = list(draws)

    def answer(*args: Any, **kwargs: Any) -> Any:
        assert left, f"{name}: a draw that was not expected"
        return draw(left.pop(0), *args, **kwargs)

    with mock.patch.object(owner, name, answer):
        yield
    assert not left, f"{name}: {len(left)} draws were not used"
