"""The interface between specs and machines."""

import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from pernn.errors import (
    BusyError,
    ConfigError,
    PernnError,
    StoreError,
    counted,
)
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory

STOP = {"stop": True}
"""Tells a child process to have what runs checkpointed and leave."""
BEAT = {"beat": True}
"""Tells the parent that a child process lives."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ask for a checkpoint and to leave: Ctrl-C, and what queues send before their limit."""
POLL_SECONDS = 0.5
MARGIN_SHARE, MAX_MARGIN_SECONDS = 0.1, 60.0
"""Part of a time limit that is kept for checkpoints and the report."""


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
        """True if the trial's attempt is over."""
        return self.state != "running"

    @property
    def is_warning(self) -> bool:
        """True if the message is a warning from a trial here."""
        return self.state == "running" and bool(self.message) and not self.elsewhere

    @classmethod
    def parse(cls, line: str) -> "TrialEvent | None":
        """Read a child's line, or return `None` if it is no event."""
        try:
            return _EVENT.validate_json(line, strict=True)
        except ValueError:
            return None


_EVENT = TypeAdapter(TrialEvent)

OnEvent = Callable[[TrialEvent], None]


@runtime_checkable
class Runner(Protocol):
    """A way of running trials."""

    def describe(self) -> str:
        """Describe in a few words where and how trials run."""

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end, even if some fail.

        On SIGINT, SIGTERM and SIGUSR1 every running trial is checkpointed, then
        `KeyboardInterrupt` is raised.
        """


def describe_share(device: str, threads: int) -> str:
    """Describe a trial's threads and device in words."""
    place = "" if device == "auto" else f"on {device}, "
    return place + counted(threads, "thread")


@contextmanager
def deferred_interrupt(interrupted: Event) -> Iterator[None]:
    """Turn signals into an event, in the main thread only.

    A second signal does not wait: it raises `KeyboardInterrupt`.
    """
    if current_thread() is not main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    previous = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # Of a handler that is not Python's nothing is known.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@dataclass
class Limits:
    """Limits after which a runner's trials stop at a checkpoint.

    Attributes:
        seconds: Since the beginning, the time to leave included.
        trials: Newly finished ones.
        paused: Whether somebody asked for a pause; asked twice a second.
        begun: The beginning, on the clock of `time.monotonic`.
        reason: Why the runner stopped early; empty if it did not.
    """

    seconds: float | None = None
    trials: int | None = None
    paused: Callable[[], bool] = lambda: False
    begun: float = field(default_factory=time.monotonic)
    reason: str = ""
    _asked: float = 0.0
    _finished: int = 0

    def count(self, event: TrialEvent) -> None:
        """Count what was finished here."""
        self._finished += event.state == "finished" and not event.elsewhere

    def leave_room(self, running: int) -> bool:
        """Return whether one more trial may begin beside those that run."""
        return self.trials is None or self._finished + running < self.trials

    def reached(self) -> bool:
        """Return whether it is time to leave, for `reason`."""
        now = time.monotonic()
        if self.reason:
            return True
        if self.trials is not None and self._finished >= self.trials:
            self.reason = f"--max-trials {self.trials} reached"
        elif self.seconds is not None:
            margin = min(MARGIN_SHARE * self.seconds, MAX_MARGIN_SECONDS)
            if now - self.begun >= self.seconds - margin:
                self.reason = f"the time limit of {self.seconds:g} s is near"
        if not self.reason and now - self._asked >= POLL_SECONDS:
            self._asked = now
            if self.paused():
                self.reason = "a pause was asked for"
        return bool(self.reason)


def require_counts(**counts: float | None) -> None:
    """Refuse numbers below 1, but not `None`."""
    for name, count in counts.items():
        if count is not None and not 1 <= count < float("inf"):
            raise ConfigError(f"{name} is invalid: expected at least 1, got {count:g}")


def make_request(
    spec: RunSpec, root: Path, *, expired: Mapping[str, str], **how: Any
) -> dict[str, Any]:
    """Return as plain values what `run_request` needs.

    Args:
        spec: The trial.
        root: Results directory.
        expired: As for `execute`.
        how: `device` and `threads` likewise; `gpu_share`, the share of a GPU that is the trial's;
            `worker` and `num_workers`, which of how many workers of the machine runs it: these
            share its GPUs.
    """
    about = {"run": spec.fingerprint(), "spec": spec.dump(), "root": str(root)}
    alone = {"gpu_share": 1.0, "worker": 0, "num_workers": 1}
    return {**about, **alone, "expired": dict(expired), **how}


def run_request(
    request: Mapping[str, Any], on_event: OnEvent, should_continue: Callable[[], bool]
) -> TrialEvent:
    """Run a request's trial here, to its end or a checkpoint.

    Args:
        request: What `make_request` returned.
        on_event: Called with each progress and warning.
        should_continue: Returns false to stop the trial at a checkpoint.

    Returns:
        How it ended; `running` if another process works on it.
    """
    # Only where trials run is torch needed.
    from pernn.lab.runs import execute
    from pernn.lab.training import limit_gpu_memory, share_devices

    run, root, reached = request["run"], Path(request["root"]), 0

    def on_update(update: int) -> bool:
        nonlocal reached
        reached = update
        on_event(TrialEvent("running", run, update))
        return should_continue()

    def on_warning(message: str) -> None:
        on_event(TrialEvent("running", run, message=message))

    on_event(TrialEvent("running", run))
    try:
        # A part of another package, or a GPU, that the driver has may be missing here.
        spec = RunSpec.load(request["spec"])
        device, share = share_devices(request["device"], request["worker"], request["num_workers"])
        if (share := share * request["gpu_share"]) < 1:
            limit_gpu_memory(device, share)
        outcome = execute(
            spec,
            root,
            device=device,
            threads=request["threads"],
            expired=request["expired"],
            on_update=on_update,
            on_warning=on_warning,
        )
    except Exception as error:  # noqa: BLE001 whatever a part raises, the other trials go on
        return _failure(run, root, error)
    if outcome.state == "finished":
        reached = spec.num_updates
    return TrialEvent(outcome.state, run, reached, elsewhere=not outcome.is_new)


def journal_failure(root: Path, event: TrialEvent) -> None:
    """Write a failure into a run's journal, if that is possible."""
    with suppress(StoreError):
        RunDirectory(root, event.run).note_failure(event.message, event.error)


def _failure(run: str, root: Path, error: Exception) -> TrialEvent:
    """Return how an attempt ended in an error; what pernn did not foresee is logged whole."""
    name = type(error).__name__
    if isinstance(error, BusyError):
        return TrialEvent("running", run, message=str(error), error=name, elsewhere=True)
    message, first = str(error), str(error).partition("\n")[0]
    if not isinstance(error, PernnError):
        with suppress(OSError):
            # The disk on which the log lies may be what is full.
            traceback.print_exception(error)
        message = f"{name}: {first}"
    event = TrialEvent("failed", run, message=message, error=name)
    journal_failure(root, event)
    return event
