"""State and pace of a run, from its files alone."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pernn.errors import StoreError, one_line

from .files import gc_paused
from .lease import LOCK, PATTERN, lock_state, newest_lease, this_boot_id
from .run_directory import METRICS, RunDirectory, is_done

TAIL = 2**16
"""Bytes at the end of `metrics.jsonl` in which its last whole line stands."""
SILENT_SECONDS = 600.0
"""Age of a lease's newest sign of life beyond any difference between two hosts' clocks."""
RunState = Literal["finished", "running", "stopped", "waiting", "failed", "damaged"]
"""In the order in which they are counted for a reader."""


@dataclass(frozen=True)
class RunStatus:
    """State of one run.

    Attributes:
        run: Its fingerprint.
        state: `running` while a process holds it; `stopped` if it can be taken up again.
        update: Newest checkpoint, or the end.
        reason: Why it diverged, failed, stopped or is damaged, or who on another host holds it.
    """

    run: str
    state: RunState
    update: int = 0
    reason: str = ""


def read_status(root: Path, run: str) -> RunStatus:
    """Return where a run stands."""
    directory = RunDirectory(root, run)
    try:
        result = directory.read_result()
        if result is not None:
            lost, end = result.get("diverged"), 0
            with suppress(LookupError, TypeError, ValueError):
                end = int(lost["update"] if lost else result["tables"]["by_update"]["update"][-1])
            reason = f"diverged: {lost['reason']}" if lost else ""
            return RunStatus(run, "finished", end, reason)
        if not directory.path.is_dir():
            return RunStatus(run, "waiting")
        begun = directory.read_spec() is not None
        update = max(directory.checkpoints.updates(), default=0)
        if lock_state(directory.path / LOCK):
            return RunStatus(run, "running", update)
        lease = newest_lease(directory.path)
        if lease is not None and not lease.released and lease.boot_id != this_boot_id():
            # Whether it lives shows only in time: whoever takes the run up will find out.
            beat = (directory.path / PATTERN.format(lease.term)).stat().st_mtime
            if time.time() - beat < max(SILENT_SECONDS, lease.seconds):
                return RunStatus(run, "running", update, f"held by {lease.holder}")
            since = datetime.fromtimestamp(beat).astimezone().isoformat(" ", "minutes")
            return RunStatus(run, "stopped", update, f"no sign of {lease.holder} since {since}")
        last = (directory.read_journal() or [{}])[-1]
        reason = one_line(str(last.get("reason", "")))
        if last.get("event") == "failed":
            return RunStatus(run, "failed", update, reason)
        return RunStatus(run, "stopped", update, reason) if begun else RunStatus(run, "waiting")
    except (StoreError, OSError) as error:
        return RunStatus(run, "damaged", reason=str(error))


def read_statuses(
    root: Path, runs: Sequence[str], before: Mapping[str, RunStatus] | None = None
) -> dict[str, RunStatus]:
    """Return where runs stand, by their names.

    Args:
        root: Results directory.
        runs: Their fingerprints.
        before: What was found at the last look; a result that is still there is not read again.
    """
    before = before or {}
    with gc_paused():
        return {
            run: before[run]
            if run in before and before[run].state == "finished" and is_done(root, run)
            else read_status(root, run)
            for run in runs
        }


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

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
    """Return the progress of a begun run, unknown where unreadable."""
    directory = RunDirectory(root, status.run)
    measured, now = _last_measured(directory.path / METRICS)
    update, total, rate = max(measured, status.update), 0, None
    with suppress(StoreError, OSError, LookupError, TypeError, ValueError):
        total = (directory.read_spec() or {})["training"]["iterations"]
        journal = directory.read_journal()
        begun = [line for line in journal if line.get("event") in ("started", "resumed")]
        elapsed = now - datetime.fromisoformat(begun[-1]["time"]).timestamp()
        fresh = update - int(begun[-1]["update"])
        rate = fresh / elapsed if elapsed > 0 and fresh > 0 else None
    return Progress(update, total, rate)


def read_update(root: Path, run: str) -> int:
    """Return a run's number of updates, by its files."""
    directory = RunDirectory(root, run)
    measured, _ = _last_measured(directory.path / METRICS)
    return max(measured, max(directory.checkpoints.updates(), default=0))


def seconds_left(statuses: Sequence[RunStatus], running: Sequence[Progress]) -> float | None:
    """Estimate a sweep's time to its end, at the present pace.

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
