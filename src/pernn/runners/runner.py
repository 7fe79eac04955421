"""The interface between specs and machines: who runs them, and what is heard meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from pernn.runs import RunSpec

Kind = Literal[
    "started", "progress", "finished", "already done", "stopped", "failed", "busy", "warning"
]
ENDS: frozenset[Kind] = frozenset({"finished", "already done", "stopped", "failed", "busy"})

STOP = {"stop": True}
"""Tells a worker process to checkpoint what it runs and leave."""
BEAT = {"beat": True}
"""Tells the driver that a worker process lives."""


@dataclass(frozen=True)
class TrialEvent:
    """Something that happened to a trial.

    Attributes:
        kind: What happened; those in `ENDS` are the last of an attempt. `busy`, while another
            process works on the trial, is followed by further attempts.
        run: The trial's fingerprint.
        update: Number of updates done, if known.
        message: Why, if it failed or is busy.
        error: Name of the exception's class, if one was the reason.
    """

    kind: Kind
    run: str
    update: int = 0
    message: str = ""
    error: str = ""

    @classmethod
    def parse(cls, line: str) -> "TrialEvent | None":
        """Read a line of a worker; `None` if it is no event, for example cut short by a kill."""
        try:
            return _EVENT.validate_json(line, strict=True)
        except ValueError:
            return None


_EVENT = TypeAdapter(TrialEvent)

Hear = Callable[[TrialEvent], None]


@runtime_checkable
class Runner(Protocol):
    """A way of running trials; all of them give the same records for the same specs."""

    def describe(self) -> str:
        """Say in a few words where trials run, and how many at a time."""
        ...

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end; a failed one does not end the others.

        On SIGINT, SIGTERM and SIGUSR1 every running trial is checkpointed, then
        `KeyboardInterrupt` is raised.
        """
        ...
