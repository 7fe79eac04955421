"""The generated parts of the page on pace: factors of updates in every published sweep."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pernn.errors import ConfigError
from pernn.experiments import LEVELS, FigureLayout, find_experiment, pace_column

from .escaping import escape_markdown, markdown_table
from .figures import draw, render
from .pace import as_factor, with_pace
from .pairs import Side
from .records import Record
from .replication import Study
from .sooner import Sooner, compare_pace

PACE_FIGURE = "vocabulary_size-small"
"""The sweep that the figure shows."""
QUESTION = "How many times as many updates do networks without the encoding need?"
HEAD = ("cell", "n", *map(str, LEVELS))


def pace_parts(studies: Sequence[Study]) -> dict[str, str]:
    """Return the generated parts of the page on pace as Markdown, by the name of their mark.

    Args:
        studies: All published sweeps.
    """
    tables, without = [], []
    for study in studies:
        found = _tables(study)
        tables += found
        without += [] if found else [escape_markdown(study.sweep.title)]
    return {
        "factors": "\n\n".join(tables),
        "without": "\n".join(f"- {title}" for title in without),
    }


def pace_figure(studies: Sequence[Study]) -> bytes | None:
    """Return the page's figure as SVG; `None` if its sweep is not published."""
    for study in studies:
        if study.sweep.name == PACE_FIGURE:
            experiment = find_experiment(study.sweep.experiment)
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
            return render(draw(about, _records(study), study.sweep.scale), "svg")
    return None


def _records(study: Study) -> list[Record]:
    curves = {one.run: one.curves for one in study.trials}
    return with_pace([one.record() for one in study.trials], curves.__getitem__)


def _tables(study: Study) -> list[str]:
    """Return a table for each encoding of a sweep that has networks without one."""
    by_kind: dict[str, list[Record]] = {}
    for record in _records(study):
        by_kind.setdefault(record["encoding.kind"], []).append(record)
    baseline, tables = by_kind.pop("none", []), []
    for kind, treated in sorted(by_kind.items()):
        # Other tasks have settings of their own, which nothing here is paired by.
        tasks = {one["task.kind"] for one in treated}
        alike = [one for one in baseline if one["task.kind"] in tasks]
        rows = _rows(_side("none", alike), _side(kind, treated))
        if rows:
            title = f"### {escape_markdown(study.sweep.title)}: {escape_markdown(kind)}"
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
    return escape_markdown(f"{one.factor} {as_factor(one.interval).bounds}{never}")
