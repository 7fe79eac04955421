"""Publishing: a sweep's finished trials into their Parquet file, checked and made compact."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pernn.errors import CorruptError

from .columns import load_pyarrow, to_parquet
from .files import naming_damage, require_writable, storing, write_atomically
from .published import ENDING, PUBLISHED_FORMAT, Published, describe_publication, read_file
from .run_directory import RunDirectory
from .sweeps import Sweep

PublishedFate = Literal["published", "identical", "kept the first"]

IDENTITY = ("experiment", "scale", "overrides")
"""What says which sweep a file is of."""
MAX_POINTS = 60
"""Points of a published learning curve."""
DIGITS = 6
"""Significant digits of its numbers."""
MEASURED = ("loss", "gradient_norm", "token_accuracy")
"""Its columns, beside the update."""


@dataclass(frozen=True)
class Publication:
    """What became of a sweep's trials.

    Attributes:
        path: The file.
        fates: Run → whether it was added, was there, or is there with another result, as of
            another machine: the first one is kept.
        left_out: Run → what is damaged in it.
    """

    path: Path
    fates: Mapping[str, PublishedFate]
    left_out: Mapping[str, str]


def publish(
    root: Path, sweep: Sweep, folder: Path, stages: Callable[[str], Iterable[str]]
) -> Publication:
    """Add a sweep's finished trials to its file of published ones; again changes nothing.

    Args:
        root: Results directory.
        sweep: What is published.
        folder: Where the files of all sweeps are; made if it is missing.
        stages: Run → the runs that it went on from, and itself.

    Raises:
        CorruptError: If the file is damaged, or is that of another sweep.
        MachineError: If pyarrow is missing.
        StoreError: If a file cannot be read or written.
    """
    path = folder / f"{sweep.name}{ENDING}"
    load_pyarrow()
    require_writable(path)
    there: dict[str, Published] = {}
    fates: dict[str, PublishedFate] = {}
    left_out: dict[str, str] = {}
    with _locked(folder):
        if path.exists():
            found = describe_publication(path)
            if any(getattr(found, key) != getattr(sweep, key) for key in IDENTITY):
                raise CorruptError(
                    f"{path}: holds {found.experiment} {found.scale}, not {sweep.name}"
                )
            there = {one.run: one for one in read_file(path)}
        for run in sweep.runs:
            try:
                result = RunDirectory(root, run).read_result()
                if result is None:
                    continue
                if run in there:
                    same = there[run].result == result
                    fates[run] = "identical" if same else "kept the first"
                else:
                    there[run] = _take(root, run, result, stages(run))
                    fates[run] = "published"
            except CorruptError as error:
                left_out[run] = str(error)
        if "published" in fates.values():
            about = {"format": PUBLISHED_FORMAT, **{key: getattr(sweep, key) for key in IDENTITY}}
            trials = [there[run].values() for run in sorted(there)]
            write_atomically(path, to_parquet(trials, about))
    return Publication(path, fates, left_out)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Be the only one who publishes here; where there are no locks, nobody can tell."""
    with storing(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _take(root: Path, run: str, result: Mapping[str, Any], stages: Iterable[str]) -> Published:
    """Return a finished run as it is published."""
    directory = RunDirectory(root, run)
    spec = directory.read_spec()
    if spec is None:
        raise CorruptError(f"{directory.path}: its spec is missing")
    return Published(
        run,
        spec,
        result,
        directory.read_environment() or {},
        _thinned(directory.read_metrics()),
        {one: _core_seconds(RunDirectory(root, one)) for one in stages},
    )


def thinned_curves(
    root: Path, taken: Sequence[Published], complain: Callable[[str], None] | None = None
) -> Callable[[str], Mapping[str, Sequence[Any]]]:
    """Return what reads a run's learning curve as it is published, be it published or not.

    Args:
        root: Results directory.
        taken: Published trials.
        complain: Told of a damaged curve, which then counts as none.

    Raises:
        CorruptError: When a damaged curve is read and nobody is told.
    """
    published = {one.run: one.curves for one in taken}

    def read(run: str) -> Mapping[str, Sequence[Any]]:
        if run in published:
            return published[run]
        with naming_damage(complain):
            return _thinned(RunDirectory(root, run).read_metrics())
        return {}

    return read


def _thinned(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return some of the lines on the training as columns, evenly spread, both ends too."""
    train = [line for line in lines if line.get("kind") == "train"]
    step = -(-len(train) // (MAX_POINTS - 1)) or 1
    kept = [line for n, line in enumerate(train) if n == 0 or (len(train) - 1 - n) % step == 0]
    names = [name for name in MEASURED if any(name in line for line in kept)]
    curves: dict[str, list[Any]] = {"update": [line["update"] for line in kept]} if kept else {}
    for name in names:
        curves[name] = [_rounded(line.get(name)) for line in kept]
    return curves


def _rounded(value: Any) -> float | None:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, int | float) else None


def _core_seconds(directory: RunDirectory) -> float:
    """Add up the time between starts and ends in a run's journal, times its threads."""
    total, begun = 0.0, None
    for line in directory.read_journal():
        with suppress(KeyError, TypeError, ValueError):
            now = datetime.fromisoformat(line["time"]).timestamp()
            if line["event"] in ("started", "resumed"):
                begun = now
            elif line["event"] in ("stopped", "finished", "diverged") and begun is not None:
                total, begun = total + now - begun, None
    threads = (directory.read_environment() or {}).get("threads", 1)
    if not isinstance(threads, int):
        raise CorruptError(f"{directory.path}: environment.json does not say how many threads")
    return round(total * threads, 3)
