"""Tables of conditions over seeds, as CSV and Markdown."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .records import Record, number, placed, sort_key
from .statistics import Interval, bootstrap_interval, student_interval
from .texts import clean, csv_cell, escape_markdown, markdown_table


@dataclass(frozen=True)
class Measured:
    """One metric of one condition.

    Attributes:
        bootstrap: Mean over seeds with the interval of the paper.
        student: The same mean with Student's t interval.
        values: Seed → value, in the seeds' order.
    """

    bootstrap: Interval
    student: Interval
    values: Mapping[Any, float]


@dataclass(frozen=True)
class Row:
    """One condition.

    Attributes:
        condition: Column → value.
        num_seeds: Finished trials.
        num_parameters: Sizes of their networks; one, unless the condition mixes networks.
        presets: Those that they were run under; one, unless the condition mixes presets.
        metrics: Name → what was measured; a metric that no trial has is absent.
    """

    condition: Mapping[str, Any]
    num_seeds: int
    num_parameters: tuple[int, ...]
    presets: tuple[str, ...]
    metrics: Mapping[str, Measured]

    def size(self, label: Callable[[Any], str] = str) -> str:
        """Return the number of parameters, its range, or a dash."""
        if not self.num_parameters:
            return "–"
        ends = dict.fromkeys((self.num_parameters[0], self.num_parameters[-1]))
        return "–".join(label(end) for end in ends)


def summarise(records: Sequence[Record], by: Sequence[str], metrics: Sequence[str]) -> list[Row]:
    """Summarise each condition over its seeds.

    Args:
        records: Finished trials.
        by: Columns whose values make a condition.
        metrics: Columns to average.

    Returns:
        One row per condition, sorted by its values.

    Raises:
        ConfigError: If two trials of one seed share a condition: `by` has too few columns.
    """
    groups: dict[tuple[Any, ...], dict[Any, Record]] = {}
    for key, record in sorted(placed(records, (*by, "seed")).items(), key=_place):
        groups.setdefault(key[:-1], {})[key[-1]] = record
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
                metrics={name: found for name, found in measured.items() if found},
            )
        )
    return rows


def _place(item: tuple[tuple[Any, ...], Record]) -> list[Any]:
    return [*map(sort_key, item[0])]


def _measure(group: Mapping[Any, Record], metric: str) -> Measured | None:
    found = {seed: number(record, metric) for seed, record in group.items()}
    values = {seed: value for seed, value in found.items() if value is not None}
    if not values:
        return None
    data = list(values.values())
    return Measured(bootstrap_interval(data), student_interval(data), values)


def to_csv(rows: Sequence[Row], metrics: Sequence[str]) -> str:
    """Return CSV of all digits: means, intervals, values by seed.

    Args:
        rows: From `summarise`.
        metrics: Metrics to write, in this order.

    Returns:
        CSV text with a header line; without bounds where there is one seed only.
    """
    by = list(rows[0].condition) if rows else []
    bounds = ("mean", "low", "high", "t_low", "t_high", "values")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    named = [f"{metric}.{bound}" for metric in metrics for bound in bounds]
    about = ("num_seeds", "num_parameters", "preset")
    writer.writerow([*map(_cell, by), *about, *map(_cell, named)])
    for row in rows:
        line: list[Any] = [*row.condition.values(), row.num_seeds]
        line += [" ".join(map(str, row.num_parameters)), " ".join(row.presets)]
        for metric in metrics:
            line += _csv_bounds(row.metrics.get(metric))
        writer.writerow([_cell(value) for value in line])
    return text.getvalue()


def _csv_bounds(found: Measured | None) -> list[Any]:
    if found is None:
        return [""] * 6
    bounds: list[Any] = [found.bootstrap.estimate]
    for interval in (found.bootstrap, found.student):
        bounds += [interval.low, interval.high] if interval.bounded else ["", ""]
    return [*bounds, " ".join(f"{seed}:{value!r}" for seed, value in found.values.items())]


def _cell(value: Any) -> Any:
    return csv_cell(clean(value)) if isinstance(value, str) else value


def to_markdown(
    rows: Sequence[Row], metrics: Sequence[str], label: Callable[[Any], str] = str
) -> str:
    """Return a short Markdown table: mean, interval, n, size.

    Args:
        rows: From `summarise`.
        metrics: Metrics to show, in this order.
        label: Value or column → how it is displayed.

    Returns:
        Markdown text; one sentence if there are no rows.
    """
    if not rows:
        return "No finished trials yet.\n"
    columns = map(label, rows[0].condition)
    head = [*columns, "n", "Parameters", *map(label, metrics)]
    cells = [
        [
            *(label(value) for value in row.condition.values()),
            str(row.num_seeds),
            row.size(label),
            *(show(row.metrics.get(metric)) for metric in metrics),
        ]
        for row in rows
    ]
    safe = [[escape_markdown(cell) for cell in line] for line in (head, *cells)]
    return markdown_table(safe[0], safe[1:]) + "\n"


def show(found: Measured | None) -> str:
    """Return mean [low, high] in four digits, or a dash."""
    return "–" if found is None else str(found.student)
