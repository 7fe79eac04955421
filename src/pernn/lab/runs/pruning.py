"""Deletion of checkpoints that are no longer needed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pernn.errors import BusyError, PernnError
from pernn.lab.config import fingerprint, own_parts_off
from pernn.lab.store import RunDirectory, is_done, list_runs, num_bytes_below
from pernn.lab.training import TrainingConfig

from .spec import RunSpec

STAGES = {"pretraining", "analysis"}
"""Keys of a spec of several stages; most have neither."""


@dataclass(frozen=True)
class Leftovers:
    """Checkpoints that a finished run can do without.

    Attributes:
        run: Its fingerprint.
        folders: Checkpoints, damaged ones and the remains of killed saves.
        num_bytes: Their size.
        skipped: Why the run is left alone, if it is.
    """

    run: str
    folders: tuple[Path, ...] = ()
    num_bytes: int = 0
    skipped: str = ""


def find_leftovers(
    root: Path,
    runs: Iterable[str],
    waiting: Sequence[RunSpec] = (),
    *,
    all_checkpoints: bool = False,
) -> Iterator[Leftovers]:
    """Find what finished runs can do without.

    By default the last checkpoint and those at multiples of `training.keep_interval` stay.

    Args:
        root: Results directory.
        runs: Which runs to look at.
        waiting: Trials that are planned; those that were begun are found in the directory.
        all_checkpoints: Let no checkpoint stay that no unfinished run still needs.
    """
    needed = needed_checkpoints(root, waiting)
    for run in dict.fromkeys(runs):
        directory = RunDirectory(root, run)
        try:
            values = directory.read_spec()
            if values is None or directory.read_result() is None:
                continue
            kept = set(needed.get(run, ()))
            if not all_checkpoints:
                interval = TrainingConfig.load(values.get("training", {})).keep_interval
                updates = directory.checkpoints.updates()
                kept |= {u for u in updates if interval and u % interval == 0} | {*updates[-1:]}
            folders = tuple(directory.checkpoints.leftovers(kept))
            if folders:
                yield Leftovers(run, folders, sum(map(num_bytes_below, folders)))
        except PernnError as error:
            yield Leftovers(run, skipped=str(error))


def with_stages(root: Path, runs: Iterable[str]) -> list[str]:
    """Add to runs the earlier stages that were begun.

    Of a run whose spec is damaged nobody knows them.
    """
    found: dict[str, None] = {}
    for run in runs:
        with suppress(PernnError):
            earlier = _first_stage(RunDirectory(root, run).read_spec())
            while earlier is not None:
                found[fingerprint(earlier)] = None
                earlier = _first_stage(earlier)
        found[run] = None
    return list(found)


def _first_stage(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the spec of the run before, as `RunSpec.first_stage` does, whatever its parts are."""
    if values is None or not values.keys() & STAGES:
        return None
    kept = {key: value for key, value in values.items() if key not in STAGES}
    first = values.get("pretraining")
    if "analysis" in values:
        return kept if first is None else {**kept, "pretraining": first}
    return {**kept, **first} if isinstance(first, Mapping) else None


@own_parts_off()
def needed_checkpoints(root: Path, waiting: Sequence[RunSpec]) -> Mapping[str, set[int]]:
    """Return which checkpoints of earlier stages unfinished runs still need: run → updates."""
    needed: dict[str, set[int]] = defaultdict(set)
    begun = (run for run in list_runs(root) if not is_done(root, run))
    specs = (RunDirectory(root, run).read_spec() for run in begun)
    for spec in (*waiting, *(RunSpec.load(one) for one in specs if one and one.keys() & STAGES)):
        first = spec.first_stage()
        if first is not None and not is_done(root, spec.fingerprint()):
            # The network before the first update needs no checkpoint.
            updates = spec.analysed_updates if spec.analysis else (first.training.iterations,)
            needed[first.fingerprint()] |= {*updates} - {0}
    return needed


def delete_leftovers(root: Path, leftovers: Leftovers) -> str:
    """Delete what a finished run can do without.

    Returns:
        Why nothing was deleted, if nothing was.

    Raises:
        StoreError: If a folder cannot be deleted.
    """
    directory = RunDirectory(root, leftovers.run)
    try:
        with directory.locked():
            if directory.read_result() is None:
                return "no longer finished"
            directory.checkpoints.delete(leftovers.folders)
    except BusyError as error:
        return str(error)
    return ""
