"""Published trials: a Parquet file per sweep with a record per finished trial.

What a record holds is text in JSON and numbers; nothing is unpickled. The contract is
docs/evidence/README.md.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pernn.errors import CorruptError, MachineError, StoreError, counted, install_command

from .files import check_format, checksum, parse_json, read_whole
from .records import check_result, flat_record
from .status import count_machines
from .sweeps import NAME, Sweep

FOLDER, VARIABLE = "evidence", "PERNN_EVIDENCE"
ENDING = ".parquet"
COLUMNS = ("run", "spec", "result", "environment", "curves", "core_seconds")
ABOUT = b"pernn"
"""Key of the file's own description: format, experiment, scale and overrides."""


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
    """Return where published trials are looked for: `PERNN_EVIDENCE`, or `evidence` here."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


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
    table = read_columns(path, ["run"])
    try:
        about = parse_json((table.schema.metadata or {})[ABOUT])
        check_format(path, about)
        return Sweep(
            path.stem,
            about["experiment"],
            about["scale"],
            about["overrides"],
            table.column("run").to_pylist(),
        )
    except (KeyError, ValueError) as error:
        raise CorruptError(f"{path}: not a file of published trials: {error}") from None


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
    found = []
    for row in read_columns(path, list(COLUMNS)).to_pylist():
        if wanted is not None and row["run"] not in wanted:
            continue
        try:
            found.append(_parse(row))
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptError(f"{path}: published trial {row['run']}: {error}") from None
    return found


def _parse(row: Mapping[str, str]) -> Published:
    values = {key: parse_json(row[key].encode()) for key in COLUMNS if key != "run"}
    if not checksum(values["spec"]).startswith(row["run"]):
        raise ValueError("the spec is that of another run")
    if values["result"].get("fingerprint") != row["run"]:
        raise ValueError("the result is that of another run")
    check_result(values["result"])
    return Published(row["run"], **values)


def read_columns(path: Path, columns: list[str]) -> Any:
    """Read columns of a Parquet file, in this thread.

    `read_table` starts threads, which now and then abort a process that ends soon after
    (apache/arrow#34314, a status of -6 after all was said).
    """
    pa, parquet = load_pyarrow()
    content = pa.BufferReader(read_whole(path))
    try:
        file = parquet.ParquetFile(content, page_checksum_verification=True, pre_buffer=False)
        return file.read(columns, use_threads=False).select(columns)
    except (pa.ArrowException, ValueError, KeyError, OSError) as error:
        said = str(error).partition("\n")[0]
        raise CorruptError(f"{path}: not a file of published trials: {said}") from None


def load_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its module for Parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MachineError(f"Parquet needs pyarrow: {install_command('parquet')}") from None
    return pa, parquet
