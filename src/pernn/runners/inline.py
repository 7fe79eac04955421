"""Trials one after another in this process."""

import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Literal

from pernn.errors import BusyError, PernnError
from pernn.runs import RunSpec, execute

from .runner import Hear, TrialEvent


@dataclass(frozen=True)
class InlineRunner:
    """Runs trials in this process: for notebooks, debuggers and tests.

    Attributes:
        device: As for `execute`.
        threads: As for `execute`.
    """

    device: str = "auto"
    threads: int = 1

    def describe(self) -> str:
        """Say where trials run."""
        return f"one after another on {self.device}, {self.threads} thread(s) each"

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end, in order; Ctrl-C finishes the update and checkpoints."""
        with deferred_interrupt() as interrupted:
            for spec in specs:
                hear(
                    run_one(
                        spec,
                        root,
                        hear,
                        device=self.device,
                        threads=self.threads,
                        may_go_on=lambda: not interrupted.is_set(),
                    )
                )
                if interrupted.is_set():
                    raise KeyboardInterrupt


@contextmanager
def deferred_interrupt() -> Iterator[Event]:
    """Turn SIGINT into an event to be looked at between updates; the main thread's only."""
    interrupted = Event()
    if current_thread() is not main_thread():
        yield interrupted
        return
    previous = signal.signal(signal.SIGINT, lambda number, frame: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)


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

    def warn(message: str) -> None:
        hear(TrialEvent("warning", run, message=message))

    hear(TrialEvent("started", run))
    try:
        outcome = execute(spec, root, device=device, threads=threads, listener=listener, warn=warn)
    except BusyError as error:
        return failure(run, error, "busy")
    except Exception as error:  # noqa: BLE001 whatever a part raises, the other trials go on
        return failure(run, error)
    return TrialEvent(outcome.status, run, spec.num_updates)


def failure(run: str, error: Exception, kind: Literal["failed", "busy"] = "failed") -> TrialEvent:
    """Say that a trial failed; what pernn did not foresee is logged whole."""
    name = type(error).__name__
    if isinstance(error, PernnError):
        return TrialEvent(kind, run, message=str(error), error=name)
    traceback.print_exception(error)
    first = str(error).partition("\n")[0]
    return TrialEvent(kind, run, message=f"{name}: {first}", error=name)
