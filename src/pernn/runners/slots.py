"""Worker processes as their driver sees them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

from pernn.runs import RunSpec
from pernn.store import refuse_links, storing

from .runner import BEAT, TrialEvent

LOG = "workers.log"
START_SECONDS = 120.0
"""Time that a worker has to load what it needs, beyond a lease."""

Events = SimpleQueue[tuple["Slot", TrialEvent | None]]


class Slot:
    """One worker process and the trial it is at.

    Args:
        process: The worker.
        events: Where its events go; `None` when it is dead.
    """

    def __init__(self, process: "subprocess.Popen[str]", events: Events) -> None:
        self.process = process
        self.trial: RunSpec | None = None
        """The trial that it was given and that has not ended."""
        # Both are pipes.
        self._orders = cast(TextIOWrapper, process.stdin)
        self._heard = time.monotonic() + START_SECONDS
        lines = cast(TextIOWrapper, process.stdout)
        threading.Thread(target=self._read, args=(lines, events), daemon=True).start()

    @classmethod
    def spawn(cls, root: Path, threads: int, events: Events) -> "Slot":
        """Start a worker that logs into a results directory."""
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        refuse_links(root / LOG)
        with storing(root), (root / LOG).open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pernn.runners.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                env=environment,
                # Ctrl-C is the driver's to hear; it tells the workers.
                start_new_session=True,
            )
        return cls(process, events)

    def order(self, content: dict[str, Any]) -> None:
        """Send a line; a worker that just died is noticed by its reader instead."""
        with suppress(OSError):
            self._orders.write(json.dumps(content) + "\n")
            self._orders.flush()

    @property
    def silent_seconds(self) -> float:
        """Time since the worker said anything."""
        return time.monotonic() - self._heard

    def forgive(self) -> None:
        """Count silence from now on: the driver itself was not listening."""
        self._heard = max(self._heard, time.monotonic())

    def kill(self) -> None:
        """End a worker that is stopped or hangs; its reader then reports its death."""
        self.process.send_signal(signal.SIGKILL)

    def close(self) -> int:
        """End a worker that has nothing left to do and give its exit status."""
        with suppress(OSError):
            self._orders.close()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _read(self, lines: TextIOWrapper, events: Events) -> None:
        """Pass a worker's events on until its output ends."""
        for line in lines:
            event = TrialEvent.parse(line)
            if event is not None:
                events.put((self, event))
            elif line.strip() != json.dumps(BEAT):
                # Cut short by a kill.
                continue
            self._heard = time.monotonic()
        lines.close()
        events.put((self, None))
