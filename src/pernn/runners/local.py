"""Trials in parallel local processes: one spawned worker per slot, each running many trials."""

import math
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


PACK_SIZE = 8
"""Trials that are given to one worker together where that is likely to pay."""
NARROW = 32
"""Hidden size up to which packs pay on a CPU: docs/performance.md has the measurements."""


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
        pack: Most trials that differ in their seed to give to one worker, which has them go side
            by side if it measures that to be faster; chosen by device and width if absent.

    Raises:
        ConfigError: If there are no processes or no threads, or packs of none.
    """

    jobs: int = 1
    device: str = "auto"
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    pack: int | None = None

    def __post_init__(self) -> None:
        least = min(self.jobs, self.threads, 1 if self.pack is None else self.pack)
        if least < 1:
            raise ConfigError(f"jobs, threads and pack must be at least 1, got {least}")

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
        return sum(bool(slot.open) for slot in self.slots)

    def is_open(self) -> bool:
        """Say whether a trial has not ended yet."""
        return bool(self.waiting) or self.running > 0

    def give_out(self) -> None:
        """Give every free slot a trial, those first that nobody else was busy with lately."""
        while self.running < self.runner.jobs:
            given = sum(len(slot.open) for slot in self.slots)
            specs = self._next_pack(given)
            if not specs or not self.runner.limits.leave_room(given):
                return
            slot = next((slot for slot in self.slots if not slot.open), None)
            if slot is None:
                slot = Slot.spawn(self.root, self.runner.threads, self.events)
                self.slots.append(slot)
            for spec in specs:
                self.waiting.remove(spec)
            slot.open = {spec.fingerprint(): spec for spec in specs}
            where = {"device": self.runner.device, "threads": self.runner.threads}
            plain = {run: spec.dump() for run, spec in slot.open.items()}
            slot.order({"specs": plain, "root": str(self.root), **where})

    def _next_pack(self, given: int) -> list[RunSpec]:
        """Choose the next trial that nobody else was busy with lately, and its like."""
        now = time.monotonic()
        due = [s for s in self.waiting if self.not_before.get(s.fingerprint(), now) <= now]
        if not due:
            return []
        size = self.runner.pack or worth_packing(due[0], self.runner.device)
        key = due[0].pack_key() if size > 1 else None
        alike = [spec for spec in due if spec.pack_key() == key] if key else due[:1]
        # No slot is to stand idle for want of trials, no limit to be passed.
        size = min(size, math.ceil(len(self.waiting) / self.runner.jobs))
        while size > 1 and not self.runner.limits.leave_room(given + size - 1):
            size -= 1
        return alike[:size]

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
        elif event.kind not in ENDS or event.run not in slot.open:
            self.hear(event)
        else:
            self._end(slot.open.pop(event.run), event)

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
        """Take a dead worker's trials up again, unless they keep killing their workers."""
        status = slot.close()
        if self.stopping:
            slot.open = {}
        reason = f"signal {-status}" if status < 0 else f"status {status}"
        for run, spec in slot.open.items():
            self.deaths[run] = self.deaths.get(run, 0) + 1
            if self.deaths[run] < MAX_DEATHS:
                self.waiting.appendleft(spec)
                continue
            message = f"its worker died {MAX_DEATHS} times, last with {reason}; see {LOG}"
            self.hear(TrialEvent("failed", run, message=message))


def worth_packing(spec: RunSpec, device: str) -> int:
    """Say how many trials like this one to try side by side; 1 where it will not pay."""
    on_gpu = device.startswith("cuda") or (device == "auto" and Path("/dev/nvidiactl").exists())
    return PACK_SIZE if on_gpu or spec.core.hidden_size <= NARROW else 1
