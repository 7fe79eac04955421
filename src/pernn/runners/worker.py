"""Child processes, from both ends of their pipes: orders go in, events come out, as JSON lines.

As a program it is a worker, which runs the trials that it is sent. It ends when its input does, so
that it never outlives its driver, and checkpoints first.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO, cast

from pernn.store import NUM_BEATS, lease_seconds, refuse_links, storing

from .runner import BEAT, SIGNALS, STOP, TrialEvent, run_order

LOG = "workers.log"
START_SECONDS = 120.0
"""Time that a child has to load what it needs, beyond a lease."""

Events = SimpleQueue[tuple["Child", TrialEvent | None]]
PROGRESS_SECONDS = 0.25
"""Least time between two progress events."""


class Child:
    """One child process."""

    def __init__(self, process: "subprocess.Popen[str]", events: Events) -> None:
        self.process = process
        # Both are pipes.
        self._orders = cast(TextIOWrapper, process.stdin)
        self._heard = time.monotonic() + START_SECONDS
        lines = cast(TextIOWrapper, process.stdout)
        self._reader = threading.Thread(target=self._read, args=(lines, events), daemon=True)
        self._reader.start()

    def order(self, content: dict[str, Any]) -> None:
        """Send a line; a child that just died is noticed by its reader instead."""
        with suppress(OSError):
            self._orders.write(json.dumps(content) + "\n")
            self._orders.flush()

    @property
    def silent_seconds(self) -> float:
        """Time since the child said anything."""
        return time.monotonic() - self._heard

    def reset_heartbeat(self) -> None:
        """Count silence from now on: the driver itself was not listening."""
        self._heard = max(self._heard, time.monotonic())

    def kill(self) -> None:
        """End a child that is stopped or hangs; its reader then reports its death."""
        self.process.send_signal(signal.SIGKILL)

    def close(self, patience: float = 10.0) -> int:
        """End a child that has nothing left to do, and its reader; return its exit status."""
        with suppress(OSError):
            self._orders.close()
        try:
            return self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            # Not for ever: what the child has started may still hold the pipe.
            self._reader.join(timeout=patience)

    def _read(self, lines: TextIOWrapper, events: Events) -> None:
        """Pass on events until its output ends."""
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


def spawn(module: str, root: Path, events: Events, environment: Mapping[str, str]) -> Child:
    """Start a module of this package as a child that logs into a results directory."""
    refuse_links(root / LOG)
    with storing(root), (root / LOG).open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"{__package__}.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            env={**os.environ, **environment},
            # Ctrl-C is the parent's to hear; it tells its children.
            start_new_session=True,
        )
    return Child(process, events)


def serve() -> TextIO:
    """Return where a child's events go; whatever a library prints goes to the log instead."""
    # It is started with -P; a part of one's own may be a file in this folder, but hides nothing.
    sys.path.append("")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return output


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
