"""Publishing: a sweep's finished trials into their Parquet file, checked and made compact."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pernn.errors import CorruptError

from .files import (
    FORMAT,
    MAX_BYTES,
    make_directory,
    require_writable,
    storing,
    to_json,
    write_atomically,
)
from .published import (
    ABOUT,
    COLUMNS,
    ENDING,
    Published,
    describe_publication,
    load_pyarrow,
    read_file,
)
from .run_directory import RunDirectory
from .sweeps import Sweep

PublishedFate = Literal["published", "identical", "kept the first"]

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
    if path.exists():
        found = describe_publication(path)
        if (found.experiment, found.scale, found.overrides) != (
            sweep.experiment,
            sweep.scale,
            dict(sweep.overrides),
        ):
            raise CorruptError(f"{path}: holds {found.experiment} {found.scale}, not {sweep.name}")
        there = {one.run: one for one in read_file(path)}
    fates: dict[str, PublishedFate] = {}
    left_out: dict[str, str] = {}
    for run in sweep.runs:
        try:
            new = _take(root, run, stages(run))
        except CorruptError as error:
            left_out[run] = str(error)
            continue
        if new is None:
            continue
        old = there.setdefault(run, new)
        same = old.result == new.result
        fates[run] = "published" if old is new else "identical" if same else "kept the first"
    if "published" in fates.values():
        with storing(folder):
            make_directory(folder)
        write_atomically(path, _to_parquet(sweep, [there[run] for run in sorted(there)]))
    return Publication(path, fates, left_out)


def _take(root: Path, run: str, stages: Iterable[str]) -> Published | None:
    """Return a run as it is published; `None` if it is not finished."""
    directory = RunDirectory(root, run)
    result = directory.read_result()
    if result is None:
        return None
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
        try:
            return _thinned(RunDirectory(root, run).read_metrics())
        except CorruptError as error:
            if complain is None:
                raise
            complain(str(error))
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
    threads: int = (directory.read_environment() or {}).get("threads", 1)
    return round(total * threads, 3)


def _to_parquet(sweep: Sweep, rows: Sequence[Published]) -> bytes:
    """Return the file; equal trials are equal bytes under the same version of pyarrow."""
    pa, parquet = load_pyarrow()
    about = {
        "format": FORMAT,
        "experiment": sweep.experiment,
        "scale": sweep.scale,
        "overrides": dict(sweep.overrides),
    }
    texts = {name: [_text(getattr(one, name)) for one in rows] for name in COLUMNS[1:]}
    columns = {"run": [one.run for one in rows], **texts}
    table = pa.table(columns, schema=pa.schema([(name, pa.string()) for name in COLUMNS]))
    table = table.replace_schema_metadata({ABOUT: to_json(about, indent=None)})
    sink = pa.BufferOutputStream()
    # One page per column, as trials repeat one another.
    parquet.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        data_page_size=MAX_BYTES,
        row_group_size=2**20,
    )
    return bytes(sink.getvalue())


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
