"""Trials in parallel local processes: one spawned worker per slot, each running many trials."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, cast

from pernn.errors import ConfigError
from pernn.runs import RunSpec
from pernn.store import storing

from .runner import ENDS, STOP, Hear, TrialEvent

MAX_DEATHS = 3
"""Times that a trial's worker may die before the trial counts as failed."""

LOG = "workers.log"

ALLOCATOR = {
    # Freed blocks stay with the process: handing them back costs page faults at every step.
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "MALLOC_TOP_PAD_": str(2**26),
}


@dataclass
class _Slot:
    """One worker process and the trial it is at."""

    process: subprocess.Popen[str]
    orders: TextIOWrapper
    spec: RunSpec | None = None

    def order(self, content: dict[str, Any]) -> None:
        """Send a line; a worker that just died is noticed by its reader instead."""
        with suppress(OSError):
            self.orders.write(json.dumps(content) + "\n")
            self.orders.flush()


@dataclass
class LocalRunner:
    """Runs trials in spawned processes; one that dies is replaced and its trial taken up again.

    Attributes:
        jobs: Number of processes.
        device: As for `execute`.
        threads: CPU threads of each trial.

    Raises:
        ConfigError: If there are no processes or no threads.
    """

    jobs: int = 1
    device: str = "auto"
    threads: int = 1
    _events: "SimpleQueue[tuple[_Slot, TrialEvent | None]]" = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.threads < 1:
            raise ConfigError(
                f"jobs and threads must be at least 1, got {self.jobs} and {self.threads}"
            )

    def describe(self) -> str:
        """Say where trials run."""
        return f"{self.jobs} at a time on {self.device}, {self.threads} thread(s) each"

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end, as many at a time as there are jobs.

        Raises:
            MachineError: If the device was named and is missing.
            StoreError: If the results directory cannot be made.
        """
        if self.device not in ("auto", "cpu"):
            # Said once, before the start, rather than by every trial.
            from pernn.training import choose_device

            choose_device(self.device)
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
        waiting, deaths = deque(specs), dict[str, int]()
        slots: list[_Slot] = []
        try:
            while waiting or any(slot.spec for slot in slots):
                while waiting and sum(slot.spec is not None for slot in slots) < self.jobs:
                    self._give(waiting.popleft(), slots, root)
                slot, event = self._next_event()
                if event is None:
                    slots.remove(slot)
                    self._bury(slot, waiting, deaths, hear)
                    continue
                if event.kind in ENDS:
                    slot.spec = None
                hear(event)
        except KeyboardInterrupt:
            self._stop(slots, hear)
            raise
        finally:
            for slot in slots:
                _close(slot)

    def _next_event(self) -> "tuple[_Slot, TrialEvent | None]":
        """Wait for an event, waking up now and then so that Ctrl-C is heard."""
        while True:
            try:
                return self._events.get(timeout=0.5)
            except Empty:
                continue

    def _give(self, spec: RunSpec, slots: list[_Slot], root: Path) -> None:
        slot = next((slot for slot in slots if slot.spec is None), None)
        if slot is None:
            slot = self._spawn(root)
            slots.append(slot)
        slot.spec = spec
        order = {"root": str(root), "device": self.device, "threads": self.threads}
        slot.order({"run": spec.fingerprint(), "spec": spec.dump(), **order})

    def _spawn(self, root: Path) -> _Slot:
        environment = {**ALLOCATOR, "OMP_NUM_THREADS": str(self.threads), **os.environ}
        with storing(root), (root / LOG).open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pernn.runners.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                # Ctrl-C is the driver's to hear; it tells the workers.
                start_new_session=True,
            )
        # Both are pipes, asked for above.
        orders, events = cast(TextIOWrapper, process.stdin), cast(TextIOWrapper, process.stdout)
        slot = _Slot(process, orders)
        threading.Thread(target=self._read, args=(slot, events), daemon=True).start()
        return slot

    def _read(self, slot: _Slot, lines: TextIOWrapper) -> None:
        """Pass a worker's events on until its output ends."""
        for line in lines:
            try:
                event = TrialEvent(**json.loads(line))
            except (ValueError, TypeError):
                # Cut short by a kill.
                continue
            self._events.put((slot, event))
        lines.close()
        self._events.put((slot, None))

    def _bury(
        self, slot: _Slot, waiting: deque[RunSpec], deaths: dict[str, int], hear: Hear
    ) -> None:
        """Take a dead worker's trial up again, unless it keeps killing its workers."""
        status = _close(slot)
        if slot.spec is None:
            return
        run = slot.spec.fingerprint()
        deaths[run] = deaths.get(run, 0) + 1
        if deaths[run] < MAX_DEATHS:
            waiting.appendleft(slot.spec)
            return
        reason = f"signal {-status}" if status < 0 else f"status {status}"
        message = f"its worker died {MAX_DEATHS} times, last with {reason}; see {LOG}"
        hear(TrialEvent("failed", run, message=message))

    def _stop(self, slots: list[_Slot], hear: Hear) -> None:
        """Have every running trial checkpoint; a second Ctrl-C does not wait for that."""
        for slot in slots:
            slot.order(STOP)
        while any(slot.spec for slot in slots):
            slot, event = self._next_event()
            if event is None:
                slot.spec = None
            elif event.kind in ENDS:
                hear(event)
                slot.spec = None


def _close(slot: _Slot) -> int:
    """End a worker that has nothing left to do and give its exit status."""
    with suppress(OSError):
        slot.orders.close()
    try:
        return slot.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        slot.process.kill()
        return slot.process.wait()
