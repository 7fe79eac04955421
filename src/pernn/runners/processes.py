"""Child processes as their parent sees them: orders go in, events come out, as JSON lines."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO, cast

from pernn.store import refuse_links, storing

from .runner import BEAT, TrialEvent

LOG = "workers.log"
START_SECONDS = 120.0
"""Time that a child has to load what it needs, beyond a lease."""

Events = SimpleQueue[tuple["Child", TrialEvent | None]]


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
        """End a child that has nothing left to do; return its exit status."""
        with suppress(OSError):
            self._orders.close()
        try:
            return self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

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
