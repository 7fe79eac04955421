"""Trials that wait to be sent: new ones, those of dead workers, those that another driver holds."""

import time
from collections import Counter, deque
from collections.abc import Sequence

from pernn.runs import RunSpec

from .local import MAX_DEATHS
from .runner import TrialEvent

NUM_BUSY_TRIES = 30
"""Times that a trial may be found busy before it is left to whoever holds it."""


class WaitingTrials:
    """What is still to be sent, in order; what comes back goes first, what is busy waits.

    Args:
        specs: The trials, in the order in which they are to start.
        busy_seconds: Time until a busy trial is tried again.
    """

    def __init__(self, specs: Sequence[RunSpec], busy_seconds: float) -> None:
        self.busy_seconds = busy_seconds
        self.ready = deque(specs)
        self.busy: deque[tuple[float, RunSpec]] = deque()
        self.deaths: Counter[str] = Counter()
        self.tries: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self.ready or self.busy)

    def take(self, number: int) -> list[RunSpec]:
        """Take out up to that many trials that may be sent now."""
        while self.busy and self.busy[0][0] <= time.monotonic():
            self.ready.append(self.busy.popleft()[1])
        return [self.ready.popleft() for _ in range(min(number, len(self.ready)))]

    def put_back(self, spec: RunSpec) -> None:
        """Take up again, before all others, what was stopped unasked."""
        self.ready.appendleft(spec)

    def died(self, spec: RunSpec, reason: str) -> TrialEvent | None:
        """Take up again a trial whose worker died, or say that it failed if it often did."""
        run = spec.fingerprint()
        self.deaths[run] += 1
        if self.deaths[run] < MAX_DEATHS:
            self.put_back(spec)
            return None
        message = f"its worker died {MAX_DEATHS} times, last: {reason}"
        return TrialEvent("failed", run, message=message)

    def found_busy(self, spec: RunSpec, event: TrialEvent) -> TrialEvent | None:
        """Try a trial that another process holds again later; at some point give it up."""
        self.tries[event.run] += 1
        if self.tries[event.run] >= NUM_BUSY_TRIES:
            return event
        self.busy.append((time.monotonic() + self.busy_seconds, spec))
        return None
