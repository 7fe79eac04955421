"""Trials on this machine, in worker processes."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

from pernn.lab.runs import RunSpec
from pernn.lab.store import lease_seconds, storing

from .schedule import (
    POLL_SECONDS,
    STOP,
    Limits,
    OnEvent,
    Schedule,
    describe_share,
    drive,
    make_request,
    require_counts,
)
from .worker import LOG, Child, Events, spawn

ABSENT_SECONDS = 5.0
"""A driver that looked away for longer was stopped itself: its workers' silence proves nothing."""


@dataclass
class LocalRunner:
    """A runner in spawned processes, replaced when they die.

    Its trial is taken up again. A trial that another process works on is looked at again later,
    until somebody finishes it.

    Attributes:
        jobs: Number of processes.
        device: As for `execute`; under `auto` and `cuda` the processes share the machine's GPUs.
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
        require_counts(jobs=self.jobs, threads=self.threads)

    def describe(self) -> str:
        """Return where trials run."""
        return f"{self.jobs} at a time, {describe_share(self.device, self.threads)} each"

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end or a limit, several at once.

        Raises:
            MachineError: If the device was named and is missing.
            StoreError: If the results directory cannot be made.
            KeyboardInterrupt: After a signal, when every trial has a checkpoint.
        """
        if self.device not in ("auto", "cpu"):
            # Checked once, before the start, rather than by every trial.
            from pernn.lab.training import choose_device

            choose_device(self.device)
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
        schedule = Schedule(specs, root, self.limits, on_event)
        pool = _Pool(self, schedule, min(self.jobs, len(specs)))
        try:
            drive(pool, schedule)
        finally:
            pool.close()


class _Pool:
    """The worker processes of one `LocalRunner.run`."""

    def __init__(self, runner: LocalRunner, schedule: Schedule, most: int) -> None:
        self.runner, self.schedule = runner, schedule
        self.most = most
        """Number of trials that ever share this machine."""
        self.trials: dict[Child, str | None] = {}
        """Worker → the run that it is at, empty if none; `None` once it leaves."""
        self.places: dict[Child, int] = {}
        """Worker → its number, which decides its GPU; a new one takes that of a dead one."""
        self.events = Events()
        self.silence = lease_seconds()
        self.looked = time.monotonic()

    def has_room(self) -> bool:
        return len(self.schedule.running) < self.runner.jobs

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Send a trial to a free worker, or to a new one."""
        root, threads = self.schedule.root, self.runner.threads
        worker = next((worker for worker, run in self.trials.items() if run == ""), None)
        if worker is None:
            libraries = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
            worker = spawn("worker", root, self.events, libraries)
            free = set(range(len(self.places) + 1)) - {*self.places.values()}
            self.places[worker] = min(free)
        self.trials[worker] = spec.fingerprint()
        how = {"device": self.runner.device, "threads": threads}
        place = {"worker": self.places[worker], "num_workers": self.most}
        worker.send(make_request(spec, root, expired=expired, **how, **place))

    def look(self) -> None:
        """Take the next event, if it comes before limits are due."""
        self._kill_unresponsive()
        try:
            worker, event = self.events.get(timeout=POLL_SECONDS)
        except Empty:
            return
        if event is None:
            self._handle_dead(worker)
        elif self.trials[worker] != event.run or not (event.is_end or event.elsewhere):
            self.schedule.on_event(event)
        else:
            # Only a worker that leaves stops a trial.
            self.trials[worker] = None if event.state == "stopped" else ""
            self.schedule.end(event)

    def stop(self) -> None:
        """Have every running trial checkpoint."""
        for worker in self.trials:
            worker.send(STOP)

    def close(self) -> None:
        """End all workers."""
        for worker in self.trials:
            worker.close()

    def _kill_unresponsive(self) -> None:
        now = time.monotonic()
        absent, self.looked = now - self.looked > ABSENT_SECONDS, now
        for worker in self.trials:
            if absent:
                # Its silence counts from now on.
                worker.heard = max(worker.heard, now)
            elif now - worker.heard > self.silence:
                worker.process.kill()

    def _handle_dead(self, worker: Child) -> None:
        status, run = worker.close(), self.trials.pop(worker)
        del self.places[worker]
        if run:
            reason = f"signal {-status}" if status < 0 else f"status {status}"
            self.schedule.fail(run, f"with {reason}; see {LOG}")
