"""Child processes: requests in and events out, as JSON lines.

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

from pernn.lab.store import NUM_BEATS, lease_seconds, refuse_links, storing

from .schedule import BEAT, SIGNALS, STOP, TrialEvent, run_request

LOG = "workers.log"
START_SECONDS = 120.0
"""Time that a child has to load what it needs, beyond a lease."""

Content = dict[str, Any]
Requests = SimpleQueue[Content]
Events = SimpleQueue[tuple["Child", TrialEvent | None]]
PROGRESS_SECONDS = 0.25
"""Least time between two progress events."""


class Child:
    """One child process."""

    def __init__(self, process: "subprocess.Popen[str]", events: Events) -> None:
        self.process = process
        # Both are pipes.
        self._requests = cast(TextIOWrapper, process.stdin)
        self.heard = time.monotonic() + START_SECONDS
        """When the child last said anything."""
        lines = cast(TextIOWrapper, process.stdout)
        threading.Thread(target=self._read, args=(lines, events), daemon=True).start()

    def send(self, content: Content) -> None:
        """Send a line, if the child still lives."""
        with suppress(OSError):
            self._requests.write(json.dumps(content) + "\n")
            self._requests.flush()

    def close(self, patience: float = 10.0) -> int:
        """End an idle child and return its exit status."""
        with suppress(OSError):
            self._requests.close()
        try:
            return self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _read(self, lines: TextIOWrapper, events: Events) -> None:
        """Pass on events until its output ends."""
        for line in lines:
            self.heard = time.monotonic()
            # Others are a beat, or were cut short by a kill.
            if event := TrialEvent.parse(line):
                events.put((self, event))
        lines.close()
        events.put((self, None))


def spawn(module: str, root: Path, events: Events, environment: Mapping[str, str]) -> Child:
    """Start a module of this package as a logging child."""
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


def serve(on_stop: Callable[[], None]) -> tuple[Callable[[Content], None], Requests]:
    """Return a sender to the parent, and its requests up to `STOP`.

    Whatever a library prints goes to the log instead.
    """
    # It is started with -P; a part of one's own may be a file in this folder, but hides nothing.
    sys.path.append("")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    speaking, requests = threading.Lock(), Requests()

    def say(content: Content) -> None:
        # Nobody hears if the parent is gone, which ends the input, too.
        with suppress(BrokenPipeError), speaking:
            output.write(json.dumps(content) + "\n")
            output.flush()

    def listen() -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request == STOP:
                break
            requests.put(request)
        on_stop()
        requests.put(STOP)

    threading.Thread(target=listen, daemon=True).start()
    return say, requests


def main() -> None:
    """Serve the driver: run the trials that it names."""
    stopping = threading.Event()
    say, requests = serve(stopping.set)
    # Torch is needed anyway, and takes a second to load.
    from pernn.lab.training import keep_freed_memory

    keep_freed_memory()

    def leave(*_: object) -> None:
        stopping.set()
        requests.put(STOP)

    def beat(seconds: float) -> None:
        while True:
            say(BEAT)
            time.sleep(seconds)

    said = 0.0

    def tell(event: TrialEvent) -> None:
        nonlocal said
        if event.update and not (event.is_end or event.message):
            if time.monotonic() - said < PROGRESS_SECONDS:
                return
            said = time.monotonic()
        say(asdict(event))

    for number in SIGNALS:
        # Queues send them to every process of a job.
        signal.signal(number, leave)
    threading.Thread(target=beat, args=(lease_seconds() / NUM_BEATS,), daemon=True).start()
    while (request := requests.get()) != STOP and not stopping.is_set():
        said = 0.0
        tell(run_request(request, tell, lambda: not stopping.is_set()))
    # Everything is written, and torch takes a second to be taken down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
