"""Trials one after another in this process."""

import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pernn.errors import BusyError, PernnError
from pernn.runs import RunSpec, execute

from .leaving import POLL_SECONDS, Limits, deferred_interrupt
from .runner import Hear, TrialEvent


@dataclass(frozen=True)
class InlineRunner:
    """Runs trials in this process: for notebooks, debuggers and tests.

    Attributes:
        device: As for `execute`.
        threads: As for `execute`.
        limits: When to leave before all is done.
    """

    device: str = "auto"
    threads: int = 1
    limits: Limits = field(default_factory=Limits)

    def describe(self) -> str:
        """Say where trials run."""
        return f"one after another on {self.device}, {self.threads} thread(s) each"

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end, in order, those of other processes last, or to a limit.

        Raises:
            KeyboardInterrupt: After a signal, when the update is finished and checkpointed.
        """
        waiting, busy = deque(specs), set[str]()
        with deferred_interrupt() as interrupted:

            def may_go_on() -> bool:
                return not interrupted.is_set() and not self.limits.reached()

            while waiting and may_go_on():
                spec = waiting.popleft()
                end = run_one(
                    spec,
                    root,
                    hear,
                    device=self.device,
                    threads=self.threads,
                    may_go_on=may_go_on,
                )
                self.limits.hear(end)
                if end.kind != "busy" or end.run not in busy:
                    hear(end)
                if end.kind == "busy":
                    busy.add(end.run)
                    waiting.append(spec)
                    if busy >= {one.fingerprint() for one in waiting}:
                        time.sleep(POLL_SECONDS)
        if interrupted.is_set():
            raise KeyboardInterrupt


def run_one(
    spec: RunSpec,
    root: Path,
    hear: Hear,
    *,
    device: str,
    threads: int,
    may_go_on: Callable[[], bool] = lambda: True,
) -> TrialEvent:
    """Carry one trial to its end, or to a checkpoint where it may not go on; say how it ended."""
    run = spec.fingerprint()

    def listener(update: int) -> bool:
        hear(TrialEvent("progress", run, update))
        return may_go_on()

    hear(TrialEvent("started", run))
    try:
        outcome = execute(
            spec,
            root,
            device=device,
            threads=threads,
            listener=listener,
            warn=lambda message: hear(TrialEvent("warning", run, message=message)),
        )
    except Exception as error:  # noqa: BLE001 whatever a part raises, the other trials go on
        return failure(run, error)
    return TrialEvent(outcome.status, run, spec.num_updates)


def failure(run: str, error: Exception) -> TrialEvent:
    """Say that a trial failed or is busy; what pernn did not foresee is logged whole."""
    name = type(error).__name__
    kind: Literal["failed", "busy"] = "busy" if isinstance(error, BusyError) else "failed"
    if isinstance(error, PernnError):
        return TrialEvent(kind, run, message=str(error), error=name)
    with suppress(OSError):
        # The disk on which the log lies may be what is full.
        traceback.print_exception(error)
    first = str(error).partition("\n")[0]
    return TrialEvent(kind, run, message=f"{name}: {first}", error=name)
