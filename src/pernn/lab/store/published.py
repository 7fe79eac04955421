"""Published trials: a Parquet file per sweep, a row per trial.

A column per value; nothing is unpickled. The contract is docs/evidence/README.md.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pernn.errors import CorruptError, MachineError, StoreError, counted

from .columns import RUN, from_table, load_pyarrow, open_parquet, read_table, to_parquet
from .files import check_format, checksum, read_whole, write_atomically
from .records import TrialValues, check_values
from .sweeps import NAME, Sweep, as_sweep

FOLDER, VARIABLE = "evidence", "PERNN_EVIDENCE"
SHIPPED = Path(__file__).parents[1] / "published"
"""Trials and plans that a wheel brings with it."""
ENDING = ".parquet"
PUBLISHED_FORMAT = 2
"""Version of a file of published trials: in the first, values were JSON in six columns."""
IDENTITY = ("experiment", "scale", "overrides")
"""What says which sweep a file is of."""


def evidence_folder() -> Path:
    """Return where published trials are looked for.

    `PERNN_EVIDENCE`, or `evidence` here; if there is none, what a wheel brought with it.
    """
    here = Path(os.environ.get(VARIABLE) or FOLDER)
    return (
        SHIPPED if VARIABLE not in os.environ and not here.is_dir() and SHIPPED.is_dir() else here
    )


def where_published(folder: Path | None) -> str:
    """Return where published trials are looked for, and how to get some."""
    if folder is None:
        return "published trials are not counted"
    there = counted(len(list_publications(folder)), "published sweep")
    place = f"published trials are looked for in {folder.absolute()} (there: {there})"
    return f"{place}; {VARIABLE} names another folder, such as `{FOLDER}` of a clone of pernn"


def list_publications(folder: Path) -> list[Path]:
    """List the files of published trials by name."""
    found = sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stem)
    return [path for path in found if NAME.fullmatch(path.stem)]


def list_published(folder: Path | None, on_warning: Callable[[str], None]) -> set[str]:
    """Return which runs are published, or none with a warning."""
    try:
        files = list_publications(folder) if folder else []
        return {run for path in files for run in describe_publication(path).runs}
    except (MachineError, StoreError) as error:
        on_warning(f"published trials do not count: {error}")
        return set()


def describe_publication(path: Path) -> Sweep:
    """Return a file's sweep with the trials that it holds.

    Raises:
        CorruptError: If it is not a file of published trials.
        MachineError: If pyarrow is missing.
        VersionError: If a newer pernn wrote it.
    """
    with _reading(path) as (file, about):
        return _sweep_of(path, about, read_table(file, [RUN]))


def read_publication(path: Path, wanted: set[str] | None = None) -> list[dict[str, Any]]:
    """Return checked trials of a file as nested values."""
    with _reading(path) as (file, about):
        table = read_table(file)
        runs = _sweep_of(path, about, table).runs
        rows = [number for number, run in enumerate(runs) if wanted is None or run in wanted]
        trials = from_table(table.take(rows), dict(about["columns"]))
        for one in trials:
            check_values(TrialValues, one)
            run, seconds = one["result"]["fingerprint"], one["core_seconds"]
            if not checksum(one["spec"]).startswith(run):
                raise ValueError(f"trial {run}: the spec is that of another run")
            one["core_seconds"] = dict(zip(seconds["runs"], seconds["seconds"], strict=True))
        return trials


def write_publication(path: Path, sweep: Sweep, trials: Sequence[Mapping[str, Any]]) -> None:
    """Write a sweep's trials in one step."""
    about = {"format": PUBLISHED_FORMAT, **{key: getattr(sweep, key) for key in IDENTITY}}
    rows = []
    for one in trials:
        runs = sorted(one["core_seconds"])
        seconds = {"runs": runs, "seconds": [one["core_seconds"][run] for run in runs]}
        rows.append({**one, "core_seconds": seconds})
    write_atomically(path, to_parquet(rows, about))


def _sweep_of(path: Path, about: Mapping[str, Any], table: Any) -> Sweep:
    runs = table.column(RUN).to_pylist()
    if len({*runs}) < len(runs):
        raise ValueError("a trial stands in it twice")
    own = {key: about[key] for key in IDENTITY}
    return as_sweep({"name": path.stem, **own, "runs": runs})


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file of published trials, with its description; name whatever is wrong in it."""
    pa, _ = load_pyarrow()
    content = read_whole(path)
    try:
        file, about = open_parquet(content)
        check_format(path, about, PUBLISHED_FORMAT)
        if about["format"] < PUBLISHED_FORMAT:
            raise CorruptError(f"{path}: published by an older version: publish into a new folder")
        yield file, about
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OSError,
    ) as error:
        said = str(error).partition("\n")[0]
        raise CorruptError(f"{path}: not a file of published trials: {said}") from None
