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
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

from pernn.errors import ConfigError
from pernn.runs import RunSpec
from pernn.store import NUM_BEATS, lease_seconds

from .inline import failure, run_one
from .leaving import SIGNALS
from .runner import BEAT, STOP, TrialEvent

PROGRESS_SECONDS = 0.25
"""Least time between two progress events."""


class Worker:
    """Runs the trials that its driver names.

    Args:
        output: Where events go.
    """

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
        """Say again and again that this process lives, until it ends."""
        while True:
            self._say(BEAT)
            time.sleep(seconds)

    def tell(self, event: TrialEvent) -> None:
        """Send an event; progress only now and then."""
        now = time.monotonic()
        if event.kind == "progress":
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
            try:
                spec = RunSpec.load(order["spec"])
            except ConfigError as error:
                # A part of another package that the driver has and this process has not.
                self.tell(failure(order["run"], error))
                continue
            end = run_one(
                spec,
                Path(order["root"]),
                self.tell,
                device=order["device"],
                threads=order["threads"],
                may_go_on=lambda: not self.stopping.is_set(),
            )
            self.tell(end)


def main() -> None:
    """Serve the driver that started this process."""
    # Whatever a library prints must not mix with the events.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # The driver starts it with -P; a part of one's own may be a file here, but hides nothing.
    sys.path.append("")
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
