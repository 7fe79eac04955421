"""The interface between specs and machines: who runs them, and what is reported meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from pernn.runs import RunSpec

STOP = {"stop": True}
"""Tells a child process to have what runs checkpointed and leave."""
BEAT = {"beat": True}
"""Tells the parent that a child process lives."""


@dataclass(frozen=True)
class TrialEvent:
    """Something that happened to a trial.

    Attributes:
        state: Its state from now on; `running` is repeated with every progress.
        run: The trial's fingerprint.
        update: Number of updates done, if known.
        message: Why it failed, who else works on it, or a warning while it runs.
        error: Name of the exception's class, if one was the reason.
        elsewhere: Whether another process did it: the trial was found finished, or is being run.
    """

    state: Literal["running", "stopped", "failed", "finished"]
    run: str
    update: int = 0
    message: str = ""
    error: str = ""
    elsewhere: bool = False

    @property
    def is_end(self) -> bool:
        """Whether the trial's attempt is over."""
        return self.state != "running"

    @property
    def is_warning(self) -> bool:
        """Whether the message is a warning from a trial that runs here."""
        return self.state == "running" and bool(self.message) and not self.elsewhere

    @classmethod
    def parse(cls, line: str) -> "TrialEvent | None":
        """Read a line of a child; `None` if it is no event, for example cut short by a kill."""
        try:
            return _EVENT.validate_json(line, strict=True)
        except ValueError:
            return None


_EVENT = TypeAdapter(TrialEvent)

OnEvent = Callable[[TrialEvent], None]


@runtime_checkable
class Runner(Protocol):
    """A way of running trials; all of them give the same records for the same specs."""

    def describe(self) -> str:
        """Return in a few words where trials run, and how many at a time."""
        ...

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end; a failed one does not end the others.

        On SIGINT, SIGTERM and SIGUSR1 every running trial is checkpointed, then
        `KeyboardInterrupt` is raised.
        """
        ...
