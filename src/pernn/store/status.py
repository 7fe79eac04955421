"""Where a run stands, from its files alone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pernn.errors import CorruptError, StoreError, one_line

from .files import MAX_SMALL_BYTES, read_whole
from .gc_pause import gc_paused
from .lease import LOCK, lock_state, newest_lease, this_boot_id
from .run_directory import ENVIRONMENT, RESULT, RunDirectory, read_record

RunState = Literal["finished", "running", "failed", "stopped", "waiting", "damaged"]


@dataclass(frozen=True)
class RunStatus:
    """Where one run stands.

    Attributes:
        run: Its fingerprint.
        state: `running` while a process holds it; `stopped` if it can be taken up again.
        update: Newest checkpoint, or the end.
        reason: Why it diverged, failed, stopped or is damaged, or who on another host holds it.
        event: The last event of its journal, where it is neither done nor running.
    """

    run: str
    state: RunState
    update: int = 0
    reason: str = ""
    event: str = ""


def is_done(root: Path, run: str) -> bool:
    """Return whether a run has a result, without reading it."""
    return (RunDirectory(root, run).path / RESULT).exists()


def read_status(root: Path, run: str) -> RunStatus:
    """Return where a run stands."""
    directory = RunDirectory(root, run)
    try:
        result = directory.read_result()
        if result is not None:
            lost = result.get("diverged")
            return RunStatus(run, "finished", reason=f"diverged: {lost['reason']}" if lost else "")
        if not directory.path.is_dir():
            return RunStatus(run, "waiting")
        begun = directory.read_spec() is not None
        update = max(directory.checkpoints.updates(), default=0)
        if lock_state(directory.path / LOCK):
            return RunStatus(run, "running", update)
        lease = newest_lease(directory.path)
        if lease is not None and not lease.released and lease.boot_id != this_boot_id():
            # Whether it lives shows only in time: whoever takes the run up will find out.
            return RunStatus(run, "running", update, f"held by {lease.holder}")
        last = (directory.read_journal() or [{}])[-1]
        event, reason = str(last.get("event", "")), one_line(str(last.get("reason", "")))
        if event == "failed":
            return RunStatus(run, "failed", update, reason, event)
        return (
            RunStatus(run, "stopped", update, reason, event) if begun else RunStatus(run, "waiting")
        )
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


def read_records(
    root: Path, runs: Sequence[str], complain: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """Return the finished ones of these runs as flat records, in their order.

    Args:
        root: Results directory.
        runs: Which runs.
        complain: Told of each run that is damaged, which is then left out.

    Raises:
        CorruptError: If a run is damaged and nobody is told.
    """
    records = []
    with gc_paused():
        for run in runs:
            try:
                record = read_record(RunDirectory(root, run))
            except CorruptError as error:
                if complain is None:
                    raise
                complain(str(error))
            else:
                records += [] if record is None else [record]
    return records


def describe_machines(root: Path, runs: Sequence[str]) -> list[str]:
    """Return on what the finished ones of these runs ran, a sentence per kind of machine.

    Raises:
        CorruptError: If a record of a machine is damaged or far longer than any.
        StoreError: If one cannot be read.
    """
    # Most files are alike, and one of each kind is enough to be read.
    kinds: dict[bytes, list[RunDirectory]] = {}
    for run in runs:
        directory = RunDirectory(root, run)
        path = directory.path / ENVIRONMENT
        if (directory.path / RESULT).exists() and path.exists():
            kinds.setdefault(read_whole(path, MAX_SMALL_BYTES), []).append(directory)
    alike = list(kinds.values())
    count = count_machines(
        [some[0].read_environment() or {} for some in alike], [len(some) for some in alike]
    )
    return [f"{number} trials ran on: {machine}." for machine, number in count.items()]


def count_machines(
    environments: Sequence[Mapping[str, Any]], times: Sequence[int] | None = None
) -> Counter[str]:
    """Count environments by what they say of their machine.

    Args:
        environments: Contents of `environment.json`.
        times: How often each counts; once if absent.
    """
    count: Counter[str] = Counter()
    for found, number in zip(environments, times or [1] * len(environments), strict=True):
        device = found.get("device_name") if found.get("device") != "cpu" else "CPU"
        packages = found.get("packages")
        torch = packages.get("torch") if isinstance(packages, dict) else None
        count[
            f"{device} of {found.get('processor')}, {found.get('threads')} thread(s), "
            f"torch {torch}, Python {found.get('python')}"
        ] += number
    return count
