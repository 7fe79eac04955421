"""Trials one after another in this process."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pernn.runs import RunSpec

from .runner import OnEvent
from .schedule import Schedule, drive
from .stopping import POLL_SECONDS, Limits
from .trial import run_trial


@dataclass(frozen=True)
class InlineRunner:
    """Runs trials in this process: for notebooks, debuggers and tests.

    Attributes:
        device: As for `execute`.
        threads: As for `execute`.
        limits: When to leave before all is done.
    """

    device: str = "auto"
    threads: int = 1
    limits: Limits = field(default_factory=Limits)

    def describe(self) -> str:
        """Return where trials run."""
        return f"one after another on {self.device}, {self.threads} thread(s) each"

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end, in order, those of other processes last, or to a limit.

        Raises:
            KeyboardInterrupt: After a signal, when the update is finished and checkpointed.
        """
        schedule = Schedule(specs, root, self.limits, on_event)
        drive(_Here(self, schedule), schedule)


class _Here:
    """This process."""

    def __init__(self, runner: InlineRunner, schedule: Schedule) -> None:
        self.runner, self.schedule = runner, schedule

    def has_room(self) -> bool:
        return True

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        end = run_trial(
            spec,
            self.schedule.root,
            self.schedule.on_event,
            device=self.runner.device,
            threads=self.runner.threads,
            may_go_on=self.schedule.may_go_on,
            expired=expired,
        )
        # A trial that was told to stop has done so; it is not to be started again.
        self.schedule.stopping = not self.schedule.may_go_on()
        self.schedule.end(end)

    def look(self) -> None:
        # Other processes hold all that waits.
        time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Nothing runs beside this."""
