"""What the checker found, in sentences."""

from __future__ import annotations

import dataclasses

from ajax.core.errors import EnvironmentFault


@dataclasses.dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an environment.

    Attributes:
        sentence: what is wrong, with the numbers seen.
        where: the member at fault: "reset", "step", "observation_space" or "action_space".
        fix: what to do.
        likely: judged from behaviour that a sound environment could show too, if rarely.
    """

    sentence: str
    where: str
    fix: str
    likely: bool = False

    def __str__(self) -> str:
        return f"{'likely, in' if self.likely else 'in'} {self.where}: {self.sentence} {self.fix}".rstrip()


@dataclasses.dataclass(frozen=True)
class Report:
    """What `check_env` found.

    Attributes:
        env: name of the environment.
        faults: what is wrong, declared faults first.
        steps: environment steps run.
        episodes: episodes that ended in them; what concerns episodes' ends is only checked where some did.
    """

    env: str
    faults: tuple[Fault, ...]
    steps: int = 0
    episodes: int = 0

    def raise_if_faulty(self) -> None:
        """Raise if anything is wrong for certain; what is only likely passes.

        Raises:
            EnvironmentFault: listing the faults.
        """
        if any(not fault.likely for fault in self.faults):
            raise EnvironmentFault(str(self))

    def __str__(self) -> str:
        run = f"{self.steps} steps, {self.episodes} episodes ended"
        if not self.faults:
            return f"{self.env}: no faults found ({run})."
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return "\n".join([f"{self.env}: {count} ({run}).", *(f"- {fault}" for fault in self.faults)])
