"""Published trials: a Parquet file per sweep with a record per finished trial.

A column per value; nothing is unpickled. The contract is docs/evidence/README.md.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pernn.errors import CorruptError, MachineError, StoreError, counted

from .columns import RUN, from_table, load_pyarrow, open_parquet, read_table
from .files import check_format, checksum, read_whole
from .records import TrialValues, check_values, flat_record
from .status import count_machines
from .sweeps import NAME, Sweep, as_sweep

FOLDER, VARIABLE = "evidence", "PERNN_EVIDENCE"
SHIPPED = Path(__file__).parents[1] / "published"
"""Trials and plans that a wheel brings with it."""
ENDING = ".parquet"
PUBLISHED_FORMAT = 2
"""Version of a file of published trials: in the first, values were JSON in six columns."""


@dataclass(frozen=True)
class Published:
    """A finished trial as it is published.

    Attributes:
        run: Its fingerprint.
        spec: All that decides its numbers.
        result: The content of `result.json`.
        environment: The machine.
        curves: Columns of the thinned learning curve: `update`, and means since the line
            before: `loss`, `gradient_norm`, `token_accuracy`.
        core_seconds: Run → seconds × threads, of the trial itself and of the runs that it went on
            from; what a killed process did is not in.
    """

    run: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any]
    environment: Mapping[str, Any]
    curves: Mapping[str, Sequence[float]]
    core_seconds: Mapping[str, float]

    def values(self) -> dict[str, Any]:
        """Return what is written of the trial."""
        seconds = sorted(self.core_seconds.items())
        return {
            "spec": self.spec,
            "result": self.result,
            "environment": self.environment,
            "curves": self.curves,
            "core_seconds": {
                "runs": [run for run, _ in seconds],
                "seconds": [number for _, number in seconds],
            },
        }

    def record(self) -> dict[str, Any]:
        """Return the trial as `read_records` does."""
        return flat_record(self.run, self.spec, self.result)

    def metric_lines(self) -> list[dict[str, Any]]:
        """Return the learning curve, thinned, as lines of `metrics.jsonl`."""
        tests = self.result.get("tables", {}).get("by_update", {})
        return [
            {"kind": kind, **dict(zip(columns, row, strict=True))}
            for kind, columns in (("train", self.curves), ("test", tests))
            for row in zip(*columns.values(), strict=True)
        ]


def evidence_folder() -> Path:
    """Return where published trials are looked for.

    `PERNN_EVIDENCE`, or `evidence` here; if there is none, what a wheel brought with it.
    """
    here = Path(os.environ.get(VARIABLE) or FOLDER)
    return (
        SHIPPED if VARIABLE not in os.environ and not here.is_dir() and SHIPPED.is_dir() else here
    )


def where_published(folder: Path | None) -> str:
    """Return in words where published trials are looked for, and how to have some."""
    if folder is None:
        return "published trials are not counted"
    there = counted(len(list_publications(folder)), "published sweep")
    place = f"published trials are looked for in {folder.absolute()} (there: {there})"
    return f"{place}; {VARIABLE} names another folder, such as `{FOLDER}` of a clone of pernn"


def list_publications(folder: Path) -> list[Path]:
    """List the files of published trials by name; none if there is no such folder."""
    found = sorted(folder.glob(f"*{ENDING}"), key=lambda path: path.stem)
    return [path for path in found if NAME.fullmatch(path.stem)]


def describe_publication(path: Path) -> Sweep:
    """Return the sweep that a file is of, with the trials that it holds.

    Raises:
        CorruptError: If it is not a file of published trials.
        MachineError: If pyarrow is missing.
        VersionError: If a newer pernn wrote it.
    """
    with _reading(path) as (file, about):
        return _sweep_of(path, about, read_table(file, [RUN]))


def read_published(folder: Path, runs: Iterable[str] | None = None) -> list[Published]:
    """Return published trials, each once, those of the first file first.

    Args:
        folder: Where the files are.
        runs: Only these; all if absent.

    Raises:
        CorruptError: If a file is damaged.
        MachineError: If pyarrow is missing.
        VersionError: If a newer pernn wrote one.
    """
    wanted = None if runs is None else set(runs)
    found: dict[str, Published] = {}
    for path in list_publications(folder):
        if wanted is None or wanted & {*describe_publication(path).runs} - found.keys():
            for one in read_file(path, wanted):
                found.setdefault(one.run, one)
    return list(found.values())


def find_published(
    folder: Path | None, runs: Iterable[str] | None, complain: Callable[[str], None]
) -> dict[str, Published]:
    """Return those of some runs that are published, by name; none if that cannot be told.

    Args:
        folder: Where the files are; `None` if nothing published counts.
        runs: Which runs; all if absent.
        complain: Told why nothing could be told.
    """
    if folder is None or not list_publications(folder):
        return {}
    try:
        return {one.run: one for one in read_published(folder, runs)}
    except (MachineError, StoreError) as error:
        complain(f"published trials do not count: {error}")
        return {}


def list_published(folder: Path | None, complain: Callable[[str], None]) -> set[str]:
    """Return which runs are published; args as for `find_published`."""
    try:
        files = list_publications(folder) if folder else []
        return {run for path in files for run in describe_publication(path).runs}
    except (MachineError, StoreError) as error:
        complain(f"published trials do not count: {error}")
        return set()


def describe_published(found: Sequence[Published]) -> list[str]:
    """Return how many trials were taken from the publication, and on what they ran."""
    if not found:
        return []
    head = f"{len(found)} trials were not run here but taken from the published ones."
    machines = count_machines([dict(one.environment) for one in found])
    return [head, *(f"{n} published trials ran on: {machine}." for machine, n in machines.items())]


def read_file(path: Path, wanted: set[str] | None = None) -> list[Published]:
    """Read a file of published trials, each one checked."""
    with _reading(path) as (file, about):
        table = read_table(file)
        runs = _sweep_of(path, about, table).runs
        rows = [number for number, run in enumerate(runs) if wanted is None or run in wanted]
        return [
            _published(values) for values in from_table(table.take(rows), dict(about["columns"]))
        ]


def _sweep_of(path: Path, about: Mapping[str, Any], table: Any) -> Sweep:
    runs = table.column(RUN).to_pylist()
    if len({*runs}) < len(runs):
        raise ValueError("a trial stands in it twice")
    own = {key: about[key] for key in ("experiment", "scale", "overrides")}
    return as_sweep({"name": path.stem, **own, "runs": runs})


def _published(values: Mapping[str, Any]) -> Published:
    check_values(TrialValues, values)
    run, seconds = values["result"]["fingerprint"], values["core_seconds"]
    if not checksum(values["spec"]).startswith(run):
        raise ValueError(f"trial {run}: the spec is that of another run")
    seconds = dict(zip(seconds["runs"], seconds["seconds"], strict=True))
    return Published(run, **{**values, "core_seconds": seconds})


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file of published trials, with its description.

    Raises:
        CorruptError: If it is none, by then or later in the block.
        VersionError: If a newer pernn wrote it.
    """
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
