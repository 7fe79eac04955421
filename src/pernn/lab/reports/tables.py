"""Tables of conditions and of records, as CSV, Markdown, JSON and Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError
from pernn.lab.config import nested
from pernn.lab.store import load_pyarrow, write_atomically
from pernn.lab.trials import (
    Trial,
    beside,
    lines_of,
    records_of,
    require_table,
    settings_of,
    unroll,
)

from .records import Record, Records, is_censored, number, placed, sort_key
from .statistics import Interval, LowerBound, bootstrap_interval, student_interval
from .texts import clean, csv_cell, markdown_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Measured:
    """One metric of one condition."""

    bootstrap: Interval  # mean over seeds with the interval of the paper
    # The same mean with Student's t interval; a bound if some trials never arrive.
    student: Interval
    values: Mapping[Any, float]  # seed → value, in the seeds' order


@dataclass(frozen=True)
class Row:
    """One condition."""

    condition: Mapping[str, Any]  # column → value
    num_seeds: int
    # Sizes of their networks; one, unless the condition mixes networks.
    num_parameters: tuple[int, ...]
    # Those that they were run under; one, unless the condition mixes presets.
    presets: tuple[str, ...]
    # Name → what was measured; a metric that no trial has is absent.
    metrics: Mapping[str, Measured]

    def size(self, label: Callable[[Any], str] = str) -> str:
        """Return the number of parameters, its range, or a dash."""
        if not self.num_parameters:
            return "–"
        ends = dict.fromkeys((self.num_parameters[0], self.num_parameters[-1]))
        return "–".join(label(end) for end in ends)


def summarise(records: Records, by: Sequence[str], metrics: Sequence[str]) -> list[Row]:
    """Summarise each condition over its seeds.

    Rows are sorted by their values of `by`, which must tell the trials of a seed apart.
    """
    found = sorted(placed(records, (*by, "seed")).items(), key=lambda one: [*map(sort_key, one[0])])
    groups = nested((key[:-1], key[-1], record) for key, record in found)
    rows = []
    for condition, group in groups.items():
        counts = {record.get("num_parameters") for record in group.values()}
        presets = {str(one["preset"]) for one in group.values() if "preset" in one}
        measured = {metric: _measure(group, metric) for metric in metrics}
        rows.append(
            Row(
                condition=dict(zip(by, condition, strict=True)),
                num_seeds=len(group),
                num_parameters=tuple(sorted(count for count in counts if isinstance(count, int))),
                presets=tuple(sorted(presets)),
                metrics={name: one for name, one in measured.items() if one},
            )
        )
    return rows


def _measure(group: Mapping[Any, Record], metric: str) -> Measured | None:
    found = ((seed, number(record, metric)) for seed, record in group.items())
    values = {seed: value for seed, value in found if value is not None}
    if not values:
        return None
    data = list(values.values())
    student = student_interval(data)
    if any(is_censored(group[seed], metric) for seed in values):
        student = LowerBound(**vars(student))
    return Measured(bootstrap_interval(data), student, values)


def to_csv(rows: Sequence[Row], metrics: Sequence[str]) -> str:
    """Return CSV of all digits: means, intervals, values by seed."""
    by = rows[0].condition if rows else {}
    bounds = ("mean", "low", "high", "t_low", "t_high", "values")
    named = [f"{metric}.{bound}" for metric in metrics for bound in bounds]
    lines: list[list[Any]] = [[*by, "num_seeds", "num_parameters", "preset", *named]]
    for row in rows:
        line = [*row.condition.values(), row.num_seeds]
        line += [" ".join(map(str, row.num_parameters)), " ".join(row.presets)]
        lines.append(line + [x for one in metrics for x in _csv_bounds(row.metrics.get(one))])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [csv_cell(clean(x)) if isinstance(x, str) else x for x in line] for line in lines
    )
    return text.getvalue()


def _csv_bounds(found: Measured | None) -> list[Any]:
    if found is None:
        return [""] * 6
    bounds: list[Any] = [found.bootstrap.estimate]
    for interval in (found.bootstrap, found.student):
        bounds += [interval.low, interval.high] if interval.bounded else ["", ""]
    return [*bounds, " ".join(f"{seed}:{value!r}" for seed, value in found.values.items())]


def to_markdown(
    rows: Sequence[Row], metrics: Sequence[str], label: Callable[[Any], str] = str
) -> str:
    """Return a short Markdown table: mean, interval, n, size."""
    if not rows:
        return "No finished trials yet.\n"
    head = [*map(label, rows[0].condition), "n", "Parameters", *map(label, metrics)]
    cells = [
        [
            *map(label, row.condition.values()),
            str(row.num_seeds),
            row.size(label),
            *(str(row.metrics[one].student) if one in row.metrics else "–" for one in metrics),
        ]
        for row in rows
    ]
    return markdown_table(head, cells, escape=True) + "\n"


NUM_ROWS = 50_000
"""Lines of curves that are beside their settings at once."""


def export_records(records: Records, place: str | Path, table: str | None = None) -> int:
    """Write a row per record, the file's ending naming the form.

    Columns are all keys that occur, in the order of their first appearance; a record without one
    has an empty cell. Tables are left out; one of them can take the trials' place. In CSV a text
    that begins like a formula (=, +, -, @, tab, line break) gets an apostrophe before it. With
    `table` each trial stands for the rows of this table of its. Returns the number of rows.
    """
    import pandas as pd

    require_exportable(place)
    require_table(records, table)
    # Whole numbers stay what they are, whatever is missing beside them.
    rows, path = pd.DataFrame(unroll(records, table), dtype=object), Path(place)
    write_atomically(path, WRITERS[path.suffix]([rows.drop(columns="tables", errors="ignore")]))
    return len(rows)


def export_curves(trials: Sequence[Trial], place: str | Path) -> int:
    """Write one row per line of trials' metrics, as `export_records` writes records.

    Returns the number of rows.
    """
    require_exportable(place)
    path, lines, settings = Path(place), lines_of(trials), settings_of(trials)
    parts = (
        beside(lines.iloc[begin : begin + NUM_ROWS], settings)
        for begin in range(0, len(lines), NUM_ROWS)
    )
    write_atomically(path, WRITERS[path.suffix](parts))
    return len(lines)


def require_exportable(place: str | Path) -> None:
    """Refuse an unfit place before records are read."""
    if "://" in str(place):
        raise ConfigError("expected a file here, not an address: export it, then copy it there")
    form = Path(place).suffix
    if form not in WRITERS:
        raise ConfigError(f"{place}: the ending must be one of {', '.join(WRITERS)}")
    if form == ".parquet":
        load_pyarrow()


def _to_csv(parts: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    """Yield the parts as CSV with one header, possible formulas defused."""
    import pandas as pd

    for place, part in enumerate(parts):
        safe = part.copy()
        for name, column in part.select_dtypes(exclude="number").items():
            # Whole numbers stay what they are, whatever is missing beside them.
            safe[name] = pd.Series(list(map(csv_cell, column)), part.index, dtype=object)
        header = [*map(csv_cell, part)] if place == 0 else False
        yield safe.to_csv(index=False, header=header, lineterminator="\n").encode()


def _to_json(parts: "Iterable[pd.DataFrame]") -> Iterator[bytes]:
    """Yield the parts as one JSON array of rows without empty cells."""
    before = b"["
    for part in parts:
        if part.empty:
            continue
        rows = json.dumps(records_of(part), indent=1, ensure_ascii=False)
        yield before + rows.removeprefix("[").removesuffix("\n]").encode()
        before = b","
    yield b"[]\n" if before == b"[" else b"\n]\n"


def _to_parquet(parts: "Iterable[pd.DataFrame]") -> bytes:
    pa, parquet = load_pyarrow()
    # A column that is empty in one part and not in another has the type of the other.
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts] or [pa.table({})]
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.concat_tables(tables, promote_options="permissive"), sink)
    return bytes(sink.getvalue())


Writer = Callable[["Iterable[pd.DataFrame]"], bytes | Iterable[bytes]]
WRITERS: dict[str, Writer] = {".csv": _to_csv, ".json": _to_json, ".parquet": _to_parquet}
"""Ending of a file → what makes its content of parts of the rows."""
