"""Generated parts of the page on pace: factors of updates."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pernn.errors import ConfigError
from pernn.lab.experiments import LEVELS, FigureLayout, pace_column

from .comparing import Sooner, compare_pace
from .figures import draw, render
from .pairs import Side
from .records import Record
from .report import Report
from .texts import escape_markdown, markdown_table

PACE_FIGURE = "vocabulary_size-small"
"""The sweep that the figure shows."""
QUESTION = "How many times as many updates do networks without the encoding need?"
HEAD = ("cell", "n", *map(str, LEVELS))


def pace_parts(reports: Sequence[Report]) -> dict[str, str]:
    """Return the parts of the page on pace by their mark.

    Args:
        reports: All published sweeps.
    """
    tables, without = [], []
    for report in reports:
        found = _tables(report)
        tables += found
        without += [] if found else [escape_markdown(report.title)]
    return {
        "factors": "\n\n".join(tables),
        "without": "\n".join(f"- {title}" for title in without),
    }


def pace_figure(reports: Sequence[Report]) -> bytes | None:
    """Return the page's figure as SVG, if its sweep is published."""
    for report in reports:
        if report.name == PACE_FIGURE:
            experiment = report.experiment
            layout = FigureLayout(
                x=experiment.figure.x,
                panels=experiment.figure.panels,
                lines=experiment.figure.lines,
                metrics=tuple(map(pace_column, LEVELS)),
                contrast=experiment.figure.contrast,
                x_base=experiment.figure.x_base,
                form="factors",
            )
            about = replace(experiment, question=QUESTION, figure=layout)
            return render(draw(about, report.records, report.scale), "svg")
    return None


def _tables(report: Report) -> list[str]:
    """Return a table for each encoding of a sweep that has networks without one."""
    by_kind: dict[str, list[Record]] = {}
    for record in report.records:
        by_kind.setdefault(record["encoding.kind"], []).append(record)
    baseline, tables = by_kind.pop("none", []), []
    for kind, treated in sorted(by_kind.items()):
        # Other tasks have settings of their own, which nothing here is paired by.
        tasks = {one["task.kind"] for one in treated}
        alike = [one for one in baseline if one["task.kind"] in tasks]
        rows = _rows(_side("none", alike), _side(kind, treated))
        if rows:
            title = f"### {escape_markdown(report.title)}: {escape_markdown(kind)}"
            tables.append(f"{title}\n\n{markdown_table(HEAD, rows)}")
    return tables


def _side(kind: str, records: Sequence[Record]) -> Side:
    return Side(kind, records, {"encoding.kind": kind})


def _rows(baseline: Side, treated: Side) -> list[tuple[str, ...]]:
    """Return a row per cell; none where nothing can be paired or no trial reached any level."""
    found: dict[str, dict[float, Sooner]] = {}
    for level in LEVELS:
        try:
            cells: Iterable[Sooner] = compare_pace(treated, baseline, level).cells
        except ConfigError:  # no curves of accuracies, or no two pairs
            return []
        for one in cells:
            found.setdefault(one.name, {})[level] = one
    return [
        (
            escape_markdown(name),
            str(len(by_level[LEVELS[0]].differences)),
            *(_shown(by_level[level]) for level in LEVELS),
        )
        for name, by_level in found.items()
        if not all(one.nothing for one in by_level.values())
    ]


def _shown(one: Sooner) -> str:
    if one.nothing:
        return one.nothing
    treated, baseline = one.num_never
    never = f" ({baseline}, {treated})" if treated or baseline else ""
    return escape_markdown(f"{one.factor} {one.interval.as_factor().bounds}{never}")
