"""When trials are stopped before they are done: signals, limits, and requests to pause."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, current_thread, main_thread
from types import FrameType

from .runner import TrialEvent

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""Ask for a checkpoint and to leave: Ctrl-C, and what queues send before their limit."""
POLL_SECONDS = 0.5
MARGIN_SHARE, MAX_MARGIN_SECONDS = 0.1, 60.0
"""Part of a time limit that is kept for checkpoints and the report."""


@contextmanager
def deferred_interrupt(interrupted: Event) -> Iterator[None]:
    """Turn signals into an event to be looked at between updates; in the main thread only.

    A second signal does not wait: it raises `KeyboardInterrupt`.
    """
    if current_thread() is not main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    previous = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # Of a handler that is not Python's nothing is known.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@dataclass
class Limits:
    """How long a runner may go on; its trials then stop at a checkpoint, which is no failure.

    Attributes:
        seconds: Since the beginning, the time to leave included.
        trials: Newly finished ones.
        paused: Whether somebody asked for a pause; asked twice a second.
        begun: The beginning, on the clock of `time.monotonic`.
        reason: Why the runner stopped early; empty if it did not.
    """

    seconds: float | None = None
    trials: int | None = None
    paused: Callable[[], bool] = lambda: False
    begun: float = field(default_factory=time.monotonic)
    reason: str = ""
    _asked: float = 0.0
    _finished: int = 0

    def count(self, event: TrialEvent) -> None:
        """Count what was finished here."""
        self._finished += event.state == "finished" and not event.elsewhere

    def leave_room(self, running: int) -> bool:
        """Return whether one more trial may begin beside those that run."""
        return self.trials is None or self._finished + running < self.trials

    def reached(self) -> bool:
        """Return whether it is time to leave; `reason` then says why."""
        now = time.monotonic()
        if self.reason:
            return True
        if self.trials is not None and self._finished >= self.trials:
            self.reason = f"--max-trials {self.trials} reached"
        elif self.seconds is not None:
            margin = min(MARGIN_SHARE * self.seconds, MAX_MARGIN_SECONDS)
            if now - self.begun >= self.seconds - margin:
                self.reason = f"the time limit of {self.seconds:g} s is near"
        if not self.reason and now - self._asked >= POLL_SECONDS:
            self._asked = now
            if self.paused():
                self.reason = "a pause was asked for"
        return bool(self.reason)
