"""The next trial that is neither finished nor held, for all engines.

A trial's lease guards its directory and its journal tells how it stands, so engines and trials need
to tell each other nothing else. What a lease says is noted without waiting: the next trial is
taken, and the held one is looked at again later.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol, runtime_checkable

from pernn.lab.runs import RunSpec
from pernn.lab.store import LeaseWatch, RunDirectory, is_done

from .runner import (
    POLL_SECONDS,
    Limits,
    OnEvent,
    TrialEvent,
    deferred_interrupt,
    describe_share,
    journal_failure,
    make_request,
    run_request,
)

MAX_DEATHS = 3
"""Times that a trial's worker may die before the trial counts as failed."""
LOOK_AGAIN_SECONDS = 1.0
"""Time until a trial that another process holds is looked at again."""


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

        Returns:
            Its spec and, by run, which expired leases it is to take over; `None` if there is none.
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
            self.requeue([spec])
            self._defer(run, event.message)
        elif event.state == "stopped" and not self.stopping:
            # Nobody here asked for it: a signal reached the worker alone.
            self.requeue([spec])
        else:
            self.limits.count(event)
            self.on_event(event)

    def fail(self, run: str, reason: str) -> None:
        """Queue a dead worker's trial again, or fail it after three deaths."""
        spec = self.running.pop(run)
        self._deaths[run] += 1
        if self._deaths[run] < MAX_DEATHS:
            self.requeue([spec])
        elif not self.stopping:
            message = f"its worker died {MAX_DEATHS} times, last {reason}"
            event = TrialEvent("failed", run, message=message)
            journal_failure(self.root, event)
            self.on_event(event)

    def requeue(self, specs: Sequence[RunSpec]) -> None:
        """Queue trials before all others, if there is time."""
        if not self.stopping:
            self.waiting = {spec.fingerprint(): spec for spec in specs} | self.waiting

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
