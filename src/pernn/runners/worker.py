"""A worker process: trials come in as JSON lines on standard input, events go out the same way.

It ends when its input does, so that it never outlives its driver, and checkpoints first.
"""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from queue import SimpleQueue
from typing import Any, TextIO

from pernn.store import NUM_BEATS, lease_seconds

from .processes import serve
from .runner import BEAT, SIGNALS, STOP, TrialEvent, run_order

PROGRESS_SECONDS = 0.25
"""Least time between two progress events."""


class Worker:
    """Runs the trials that its driver names."""

    def __init__(self, output: TextIO) -> None:
        self.output = output
        self.orders: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.stopping = threading.Event()
        self.last_progress: dict[str, float] = {}
        self._speaking = threading.Lock()

    def listen(self, lines: TextIO) -> None:
        """Take orders until the input ends; a stop order or the end stops the running trial."""
        for line in lines:
            order = json.loads(line)
            if order == STOP:
                break
            self.orders.put(order)
        self.leave()

    def leave(self) -> None:
        """Checkpoint the running trial and take no other."""
        self.stopping.set()
        self.orders.put(None)

    def beat(self, seconds: float) -> None:
        """Tell the driver at this period that this process lives, until it ends."""
        while True:
            self._say(BEAT)
            time.sleep(seconds)

    def tell(self, event: TrialEvent) -> None:
        """Send an event; progress only now and then."""
        now = time.monotonic()
        if event.update and not (event.is_end or event.message):
            if now - self.last_progress.get(event.run, 0.0) < PROGRESS_SECONDS:
                return
            self.last_progress[event.run] = now
        self._say(asdict(event))

    def _say(self, content: dict[str, Any]) -> None:
        try:
            with self._speaking:
                self.output.write(json.dumps(content) + "\n")
                self.output.flush()
        except BrokenPipeError:
            # The driver is gone.
            self.leave()

    def work(self) -> None:
        """Carry out orders until there are no more."""
        while (order := self.orders.get()) is not None and not self.stopping.is_set():
            self.tell(run_order(order, self.tell, lambda: not self.stopping.is_set()))


def main() -> None:
    """Serve the driver that started this process."""
    output = serve()
    # Torch is needed anyway, and takes a second to load.
    from pernn.training import keep_freed_memory

    keep_freed_memory()
    worker = Worker(output)
    for number in SIGNALS:
        # Queues send them to every process of a job.
        signal.signal(number, lambda *_: worker.leave())
    threading.Thread(target=worker.listen, args=(sys.stdin,), daemon=True).start()
    period = lease_seconds() / NUM_BEATS
    threading.Thread(target=worker.beat, args=(period,), daemon=True).start()
    worker.work()
    # Everything is written, and torch takes a second to be taken down.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
