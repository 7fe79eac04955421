"""Runners, their trials' events, and the schedule that says which is next.

A trial's lease guards its directory and its journal tells how it stands, so engines and trials need
to tell each other nothing else. The next trial is one that is neither finished nor held; one that
is held is looked at again later, without waiting.
"""

import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import TypeAdapter

from pernn.errors import BusyError, ConfigError, PernnError, StoreError, counted, one_line
from pernn.lab.runs import RunSpec
from pernn.lab.store import LeaseWatch, RunDirectory, is_done

STOP = {"stop": True}
"""Tells a child process to have what runs checkpointed and leave."""
BEAT = {"beat": True}
"""Tells the parent that a child process lives."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ask for a checkpoint and to leave: Ctrl-C, and what queues send before their limit."""
POLL_SECONDS = 0.5
MARGIN_SHARE, MAX_MARGIN_SECONDS = 0.1, 60.0
"""Part of a time limit that is kept for checkpoints and the report."""
MAX_DEATHS = 3
"""Times that a trial's worker may die before the trial counts as failed."""
LOOK_AGAIN_SECONDS = 1.0
"""Time until a trial that another process holds is looked at again."""


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
        with suppress(ValueError):
            return _EVENT.validate_json(line, strict=True)
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


def num_cores() -> int:
    """Count the CPU cores that this process may use."""
    # Only Linux tells which ones; elsewhere all are taken to be.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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

    @contextmanager
    def anew(self, paused: Callable[[], bool]) -> Iterator[None]:
        """Count from 0, and heed one more who may pause the runner."""
        before, self.paused = self.paused, lambda: before() or paused()
        self.reason, self._finished = "", 0
        try:
            yield
        finally:
            self.paused = before

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
        expired: As for `execute`, like `device` and `threads` in `how`.
        how: Also `gpu_share`, the trial's part of a GPU; `worker` and `num_workers`, which of how
            many that share the machine's GPUs runs it.
    """
    about = {"run": spec.fingerprint(), "spec": spec.dump(), "root": str(root)}
    alone = {"gpu_share": 1.0, "worker": 0, "num_workers": 1}
    return {**about, **alone, "expired": dict(expired), **how}


def run_request(
    request: Mapping[str, Any], on_event: OnEvent, should_continue: Callable[[], bool]
) -> TrialEvent:
    """Run a request's trial here until it ends or is to stop.

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


def describe_error(error: BaseException) -> str:
    """Name what nobody foresaw, with its first line."""
    first, _, _ = str(error).strip().partition("\n")
    return f"{type(error).__name__}: {one_line(first)}"


def _failure(run: str, root: Path, error: Exception) -> TrialEvent:
    """Return how an attempt ended in an error; what pernn did not foresee is logged whole."""
    name, message = type(error).__name__, str(error)
    if isinstance(error, BusyError):
        return TrialEvent("running", run, message=message, error=name, elsewhere=True)
    if not isinstance(error, PernnError):
        with suppress(OSError):
            # The disk on which the log lies may be what is full.
            traceback.print_exception(error)
        message = describe_error(error)
    event = TrialEvent("failed", run, message=message, error=name)
    journal_failure(root, event)
    return event


class Schedule:
    """Trials that wait or run, and their workers' deaths."""

    def __init__(
        self, specs: Sequence[RunSpec], root: Path, limits: Limits, on_event: OnEvent
    ) -> None:
        self.root, self.limits, self.on_event = root, limits, on_event
        self.waiting = {spec.fingerprint(): spec for spec in specs}
        self.running: dict[str, RunSpec] = {}
        self.interrupted, self.stopping = Event(), False
        self._deaths: Counter[str] = Counter()
        self._leases = LeaseWatch()
        self._not_before: dict[str, float] = {}

    def has_more(self) -> bool:
        """Return whether a trial has not ended yet."""
        return bool(self.waiting or self.running)

    def should_continue(self) -> bool:
        """Return whether neither a signal nor a limit ends the work."""
        return not self.interrupted.is_set() and not self.limits.reached()

    def next(self) -> tuple[RunSpec, Mapping[str, str]] | None:
        """Take the next trial that may start now.

        With it come, by run, the expired leases that it is to take over.
        """
        now = time.monotonic()
        if not self.limits.leave_room(len(self.running)):
            return None
        for run, spec in list(self.waiting.items()):
            if self._not_before.get(run, now) > now:
                continue
            if is_done(self.root, run):
                del self.waiting[run]
                self.on_event(TrialEvent("finished", run, spec.num_updates, elsewhere=True))
                continue
            holder, expired = self._look(spec)
            if holder:
                self._defer(run, f"{holder} is working on this run")
                continue
            del self.waiting[run]
            self.running[run] = spec
            return spec, expired
        return None

    def end(self, event: TrialEvent) -> None:
        """Note how an attempt ended, and queue what can go on."""
        run = event.run
        spec = self.running.pop(run)
        if event.state == "running":
            self.requeue(spec)
            self._defer(run, event.message)
        elif event.state == "stopped" and not self.stopping:
            # Nobody here asked for it: a signal reached the worker alone.
            self.requeue(spec)
        else:
            self.limits.count(event)
            self.on_event(event)

    def fail(self, run: str, reason: str) -> None:
        """Queue a dead worker's trial again, or fail it after three deaths."""
        spec = self.running.pop(run)
        self._deaths[run] += 1
        if self._deaths[run] < MAX_DEATHS:
            self.requeue(spec)
        elif not self.stopping:
            message = f"its worker died {MAX_DEATHS} times, last {reason}"
            event = TrialEvent("failed", run, message=message)
            journal_failure(self.root, event)
            self.on_event(event)

    def requeue(self, spec: RunSpec) -> None:
        """Queue a trial before all others, if there is time."""
        if not self.stopping:
            self.waiting = {spec.fingerprint(): spec} | self.waiting

    def stop(self) -> None:
        """Start nothing any more."""
        self.stopping = True
        self.waiting.clear()

    def _look(self, spec: RunSpec) -> tuple[str, dict[str, str]]:
        """Return who holds a trial or an earlier stage of it, and which leases have expired."""
        expired: dict[str, str] = {}
        for run in (stage.fingerprint() for stage in spec.stages):
            holder, expired[run] = self._leases.look(RunDirectory(self.root, run).path)
            if holder:
                return holder, {}
        return "", expired

    def _defer(self, run: str, message: str) -> None:
        if run not in self._not_before:
            self.on_event(TrialEvent("running", run, message=message, elsewhere=True))
        self._not_before[run] = time.monotonic() + LOOK_AGAIN_SECONDS


@runtime_checkable
class Engine(Protocol):
    """The interface of what runs a schedule's trials."""

    def has_room(self) -> bool:
        """Return whether one more trial may be started."""

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Start a trial."""

    def look(self) -> None:
        """Wait a moment for news of running trials, and tell the schedule."""

    def stop(self) -> None:
        """Have running trials checkpoint and end."""


def drive(engine: Engine, schedule: Schedule) -> None:
    """Run trials until all have ended, or a signal or limit stops.

    Raises:
        KeyboardInterrupt: After a signal, when every running trial is checkpointed.
    """
    with deferred_interrupt(schedule.interrupted):
        while schedule.has_more() and schedule.should_continue():
            while engine.has_room() and schedule.should_continue() and (trial := schedule.next()):
                engine.start(*trial)
            if schedule.has_more():
                engine.look()
        if schedule.has_more():
            schedule.stop()
            engine.stop()
        while schedule.running:
            engine.look()
    if schedule.interrupted.is_set():
        raise KeyboardInterrupt


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
        """Return where trials run."""
        return f"one after another, {describe_share(self.device, self.threads)} each"

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial in order, those of other processes last.

        Raises:
            KeyboardInterrupt: After a signal, when the update is finished and checkpointed.
        """
        schedule = Schedule(specs, root, self.limits, on_event)
        go_on, how = schedule.should_continue, {"device": self.device, "threads": self.threads}
        with deferred_interrupt(schedule.interrupted):
            while schedule.has_more() and go_on():
                if trial := schedule.next():
                    spec, expired = trial
                    request = make_request(spec, root, expired=expired, **how)
                    end = run_request(request, on_event, go_on)
                    # A trial that was told to stop has done so; it is not to be started again.
                    schedule.stopping = not go_on()
                    schedule.end(end)
                else:
                    # Other processes hold all that waits.
                    time.sleep(POLL_SECONDS)
        if schedule.interrupted.is_set():
            raise KeyboardInterrupt
