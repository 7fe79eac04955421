"""Records as CSV, JSON or Parquet, for other people's tools."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError
from pernn.lab.store import load_pyarrow, require_writable, storing, write_atomically
from pernn.lab.trials import (
    Trial,
    beside,
    lines_of,
    records_of,
    require_table,
    settings_of,
    unroll,
)

from .texts import csv_cell

if TYPE_CHECKING:
    import pandas as pd

Records = Sequence[dict[str, Any]]
NUM_ROWS = 50_000
"""Lines of curves that are beside their settings at once."""


def export_records(records: Records, place: str | Path, table: str | None = None) -> int:
    """Write a row per record, the file's ending naming the form.

    Columns are all keys that occur, in the order of their first appearance; a record without one
    has an empty cell. Tables are left out; one of them can take the trials' place. In CSV a text
    that begins like a formula (=, +, -, @, tab, line break) gets an apostrophe before it.

    Args:
        records: Finished trials.
        place: Path of the file.
        table: If given, each trial stands for the rows of this table of its.

    Returns:
        The number of rows.

    Raises:
        ConfigError: If the place is an address, its ending is not one of .csv, .json, .parquet, or
            no trial has the table.
        CorruptError: If a trial's table is malformed.
        MachineError: If a package is missing that the form needs.
        StoreError: If the file cannot be written.
    """
    require_exportable(place)
    if table is not None:
        require_table(records, table)
    rows = [
        {column: value for column, value in record.items() if column != "tables"}
        for record in unroll(records, table)
    ]
    path = Path(place)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, WRITERS[path.suffix](rows))
    return len(rows)


def export_curves(trials: Sequence[Trial], place: str | Path) -> int:
    """Write one row per line of trials' metrics, as `export_records` writes records.

    Args:
        trials: Finished ones.
        place: Path of the file.

    Returns:
        The number of rows.

    Raises:
        ConfigError: If the place is an address, or its ending is not one of .csv, .json, .parquet.
        MachineError: If a package is missing that the form needs.
        StoreError: If the file cannot be written.
    """
    require_exportable(place)
    path, lines, settings = Path(place), lines_of(trials), settings_of(trials)
    if path.suffix == ".csv":
        texts = lines.select_dtypes(exclude="number").columns
        lines = lines.assign(**lines[texts].map(csv_cell))
        settings = settings.map(csv_cell)
    parts = (
        beside(lines.iloc[begin : begin + NUM_ROWS], settings)
        for begin in range(0, len(lines), NUM_ROWS)
    )
    write_atomically(path, CURVE_WRITERS[path.suffix](parts))
    return len(lines)


def require_exportable(place: str | Path) -> None:
    """Refuse an unfit place before records are read.

    Raises:
        ConfigError: If it is an address, or its ending is not one of .csv, .json, .parquet.
        MachineError: If the form needs a package that is missing.
        StoreError: If the file cannot be written.
    """
    if "://" in str(place):
        raise ConfigError("expected a file here, not an address: export it, then copy it there")
    form = Path(place).suffix
    if form not in WRITERS:
        raise ConfigError(f"{place}: the ending must be one of {', '.join(WRITERS)}")
    if form == ".parquet":
        load_pyarrow()
    require_writable(Path(place))


def columns(records: Records) -> list[str]:
    """List all keys in the order of their first appearance."""
    return list(dict.fromkeys(key for record in records for key in record))


def to_csv(records: Records) -> bytes:
    """Return records as CSV with a header, possible formulas defused."""
    names, text = columns(records), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    writer.writerows([csv_cell(record.get(name)) for name in names] for record in records)
    return text.getvalue().encode()


def to_json_rows(records: Records) -> bytes:
    """Return records as a JSON array."""
    return json.dumps(list(records), indent=1, ensure_ascii=False).encode() + b"\n"


def to_parquet(records: Records) -> bytes:
    """Return records as a Parquet file.

    Raises:
        MachineError: If pyarrow is missing.
    """
    pa, parquet = load_pyarrow()
    names = columns(records)
    table = pa.table({name: [record.get(name) for record in records] for name in names})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


WRITERS = {".csv": to_csv, ".json": to_json_rows, ".parquet": to_parquet}
"""Ending of a file → what makes its content."""


def _curves_to_csv(parts: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    for number, part in enumerate(parts):
        named = [*map(csv_cell, part)] if number == 0 else False
        yield part.to_csv(index=False, header=named, lineterminator="\n").encode()


def _curves_to_json(parts: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    before = b"["
    for part in parts:
        yield before + to_json_rows(records_of(part)).removeprefix(b"[").removesuffix(b"\n]\n")
        before = b","
    yield b"[]\n" if before == b"[" else b"\n]\n"


def _curves_to_parquet(parts: "Iterable[pd.DataFrame]") -> bytes:
    pa, parquet = load_pyarrow()
    # A column that is empty in one part and not in another has the type of the other.
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts] or [pa.table({})]
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.concat_tables(tables, promote_options="permissive"), sink)
    return bytes(sink.getvalue())


CurveWriter = Callable[["Iterable[pd.DataFrame]"], bytes | Iterable[bytes]]
CURVE_WRITERS: dict[str, CurveWriter] = {
    ".csv": _curves_to_csv,
    ".json": _curves_to_json,
    ".parquet": _curves_to_parquet,
}
"""Ending of a file → what makes its content of parts of the rows."""
