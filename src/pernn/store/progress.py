"""How far a running trial is, and how fast it goes: from its files, between two checkpoints too."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pernn.errors import StoreError

from .run_directory import METRICS, RunDirectory
from .status import RunStatus

TAIL = 2**16
"""Bytes at the end of `metrics.jsonl` in which its last whole line stands."""


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        update: Updates done, as far as its files say.
        total: Updates of its training; 0 if unknown.
        rate: Updates per second since it was started or resumed; `None` if unknown.
    """

    update: int
    total: int
    rate: float | None

    @property
    def seconds_left(self) -> float | None:
        """Estimate the time to the end of the training."""
        return max(0, self.total - self.update) / self.rate if self.rate and self.total else None


def read_progress(root: Path, status: RunStatus) -> Progress:
    """Return how far a run is that began; what cannot be read is unknown."""
    directory = RunDirectory(root, status.run)
    spec: dict[str, Any] = {}
    journal: list[dict[str, Any]] = []
    with suppress(StoreError, OSError):
        spec, journal = directory.read_spec() or {}, directory.read_journal()
    training = spec.get("training")
    total = training.get("iterations") if isinstance(training, dict) else None
    update, now = _last_measured(directory.path / METRICS)
    update = max(update, status.update)
    begun = [line for line in journal if line.get("event") in ("started", "resumed")]
    rate = None
    with suppress(IndexError, KeyError, TypeError, ValueError):
        elapsed = now - datetime.fromisoformat(begun[-1]["time"]).timestamp()
        fresh = update - int(begun[-1]["update"])
        rate = fresh / elapsed if elapsed > 0 and fresh > 0 else None
    return Progress(update, total if isinstance(total, int) else 0, rate)


def read_update(root: Path, run: str) -> int:
    """Return how many updates a run has done, as far as its files tell."""
    directory = RunDirectory(root, run)
    measured, _ = _last_measured(directory.path / METRICS)
    return max(measured, max(directory.checkpoints.updates(), default=0))


def seconds_left(statuses: Sequence[RunStatus], running: Sequence[Progress]) -> float | None:
    """Estimate the time to the end of a sweep, at the pace of what runs now.

    Trials that have not begun are taken to be as long as those that run.
    """
    rate = sum(one.rate or 0 for one in running)
    if not rate:
        return None
    length = sum(one.total for one in running) / len(running)
    left: float = sum(max(0, one.total - one.update) for one in running)
    left += sum(
        max(0, length - one.update) for one in statuses if one.state not in ("finished", "running")
    )
    return left / rate


def _last_measured(path: Path) -> tuple[int, float]:
    """Return the update of the last whole line of metrics, and when it was written."""
    with suppress(OSError, ValueError, KeyError, TypeError), path.open("rb") as file:
        found = os.fstat(file.fileno())
        file.seek(max(0, found.st_size - TAIL))
        line = file.read().split(b"\n")[-2:][0]
        return int(json.loads(line)["update"]), found.st_mtime
    return 0, 0.0
