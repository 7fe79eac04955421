"""Trials in parallel local processes: one spawned worker per slot, each running many trials."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

from pernn.errors import ConfigError
from pernn.runs import RunSpec
from pernn.store import lease_seconds, storing

from .leaving import POLL_SECONDS, Limits, deferred_interrupt
from .runner import ENDS, STOP, Hear, TrialEvent
from .slots import LOG, Events, Slot

MAX_DEATHS = 3
"""Times that a trial's worker may die before the trial counts as failed."""
BUSY_SECONDS = 1.0
"""Least time between two attempts at a trial that another driver works on."""
ABSENT_SECONDS = 5.0
"""A driver that looked away for longer was stopped itself: its workers' silence proves nothing."""


@dataclass
class LocalRunner:
    """Runs trials in spawned processes; one that dies or falls silent is replaced.

    Its trial is taken up again. A trial that another driver works on is tried again later, until
    somebody finishes it.

    Attributes:
        jobs: Number of processes.
        device: As for `execute`.
        threads: CPU threads of each trial.
        limits: When to leave before all is done.

    Raises:
        ConfigError: If there are no processes or no threads.
    """

    jobs: int = 1
    device: str = "auto"
    threads: int = 1
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        least = min(self.jobs, self.threads)
        if least < 1:
            raise ConfigError(f"jobs and threads must be at least 1, got {least}")

    def describe(self) -> str:
        """Say where trials run."""
        return f"{self.jobs} at a time on {self.device}, {self.threads} thread(s) each"

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end, as many at a time as there are jobs, or to a limit.

        Raises:
            MachineError: If the device was named and is missing.
            StoreError: If the results directory cannot be made.
            KeyboardInterrupt: After a signal, when every trial has a checkpoint.
        """
        if self.device not in ("auto", "cpu"):
            # Said once, before the start, rather than by every trial.
            from pernn.training import choose_device

            choose_device(self.device)
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
        drive = _Drive(self, specs, root, hear)
        with deferred_interrupt() as interrupted:
            try:
                while drive.is_open() and not self.limits.reached() and not interrupted.is_set():
                    drive.give_out()
                    drive.look()
                if drive.is_open():
                    drive.stop()
            finally:
                drive.close()
        if interrupted.is_set():
            raise KeyboardInterrupt


class _Drive:
    """The state of one `LocalRunner.run`."""

    def __init__(
        self, runner: LocalRunner, specs: Sequence[RunSpec], root: Path, hear: Hear
    ) -> None:
        self.runner, self.root, self.hear = runner, root, hear
        self.waiting, self.deaths = deque(specs), dict[str, int]()
        self.not_before: dict[str, float] = {}
        self.slots: list[Slot] = []
        self.events = Events()
        self.silence = lease_seconds()
        self.looked = time.monotonic()
        self.stopping = False

    @property
    def running(self) -> int:
        """Number of workers that are at work."""
        return sum(slot.trial is not None for slot in self.slots)

    def is_open(self) -> bool:
        """Say whether a trial has not ended yet."""
        return bool(self.waiting) or self.running > 0

    def give_out(self) -> None:
        """Give every free slot a trial, those first that nobody else was busy with lately."""
        while self.running < self.runner.jobs:
            now = time.monotonic()
            due = (s for s in self.waiting if self.not_before.get(s.fingerprint(), now) <= now)
            spec = next(due, None)
            if spec is None or not self.runner.limits.leave_room(self.running):
                return
            slot = next((slot for slot in self.slots if slot.trial is None), None)
            if slot is None:
                slot = Slot.spawn(self.root, self.runner.threads, self.events)
                self.slots.append(slot)
            self.waiting.remove(spec)
            slot.trial = spec
            where = {"device": self.runner.device, "threads": self.runner.threads}
            what = {"run": spec.fingerprint(), "spec": spec.dump()}
            slot.order({**what, "root": str(self.root), **where})

    def look(self) -> None:
        """Take the next event, if one comes before it is time to look at limits again."""
        self._end_the_silent()
        try:
            slot, event = self.events.get(timeout=POLL_SECONDS)
        except Empty:
            return
        if event is None:
            self.slots.remove(slot)
            self._bury(slot)
        elif event.kind in ENDS and slot.trial and slot.trial.fingerprint() == event.run:
            spec, slot.trial = slot.trial, None
            self._end(spec, event)
        else:
            self.hear(event)

    def stop(self) -> None:
        """Have every running trial checkpoint."""
        self.stopping = True
        self.waiting.clear()
        for slot in self.slots:
            slot.order(STOP)
        while self.running:
            self.look()

    def close(self) -> None:
        """End all workers."""
        for slot in self.slots:
            slot.close()

    def _end(self, spec: RunSpec, event: TrialEvent) -> None:
        run = spec.fingerprint()
        self.runner.limits.hear(event)
        if event.kind == "busy" and not self.stopping:
            if run not in self.not_before:
                self.hear(event)
            self.not_before[run] = time.monotonic() + BUSY_SECONDS
            self.waiting.append(spec)
        elif event.kind == "stopped" and not self.stopping:
            # A signal reached the worker alone.
            self.waiting.appendleft(spec)
        else:
            self.hear(event)

    def _end_the_silent(self) -> None:
        now = time.monotonic()
        absent, self.looked = now - self.looked > ABSENT_SECONDS, now
        for slot in self.slots:
            if absent:
                slot.forgive()
            elif slot.silent_seconds > self.silence:
                slot.kill()

    def _bury(self, slot: Slot) -> None:
        """Take a dead worker's trial up again, unless it keeps killing its workers."""
        status = slot.close()
        if self.stopping or slot.trial is None:
            return
        run = slot.trial.fingerprint()
        self.deaths[run] = self.deaths.get(run, 0) + 1
        if self.deaths[run] < MAX_DEATHS:
            self.waiting.appendleft(slot.trial)
            return
        reason = f"signal {-status}" if status < 0 else f"status {status}"
        message = f"its worker died {MAX_DEATHS} times, last with {reason}; see {LOG}"
        self.hear(TrialEvent("failed", run, message=message))
