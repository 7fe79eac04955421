"""Learning curves of a sweep: training and test, thinned, as rows and as a further figure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pernn.experiments import Experiment, FigureLayout, names_of

from .figures import Format, draw, render
from .labels import Labels, footer, value_of
from .more_figures import ExtraFigure
from .records import Record
from .unrolled import is_setting

STEM = "learning_curves"
CAPTION = "How the networks learnt"
NUM_POINTS = 60
"""So many points of a trial's training, and of its tests, are drawn at most."""
NUM_PANELS = 8
"""At most this many panels are drawn per metric; of more, each core keeps its extremes."""

TESTS = ("token_accuracy", "perplexity")
"""Metrics of the tests that are drawn, beside the loss."""
NAMED = ("run", "seed", "update")

Metrics = Callable[[str], Sequence[Mapping[str, Any]]]
"""Run → the lines of its `metrics.jsonl`."""


def curve_rows(
    records: Iterable[Record], read: Metrics, num_points: int | None = None
) -> list[Record]:
    """Return one row per line of each trial's metrics, beside the trial's settings.

    Args:
        records: Trials; of their columns the settings and `run` are kept.
        read: Where the lines come from.
        num_points: If given, at most this many lines of each kind per trial, evenly spread, the
            last one among them.
    """
    rows: list[Record] = []
    for record in records:
        about = {name: value for name, value in record.items() if is_setting(name)}
        lines = read(record["run"])
        for kind in ("train", "test"):
            own = [line for line in lines if line.get("kind") == kind]
            if num_points is not None and len(own) > num_points:
                step = (len(own) - 1) / (num_points - 1)
                own = [own[round(place * step)] for place in range(num_points)]
            rows += [{"run": record["run"], **about, **line} for line in own]
    return rows


def draw_curves(
    experiment: Experiment, rows: Sequence[Record], scale: str, formats: Sequence[Format]
) -> ExtraFigure:
    """Draw training and test curves: a panel per panel of the figure, mean, interval and trials.

    Args:
        experiment: Its labels and its figure's conditions are taken.
        rows: From `curve_rows`.
        scale: Of the sweep.
        formats: Which files are drawn.
    """
    if not rows:
        return ExtraFigure(STEM, CAPTION, "", {}, "no trial has curves here")
    panels, lines = _conditions(experiment.figure, rows)
    kept, note = _kept(rows, panels, Labels(experiment.labels))
    # A record per update: the training's own lines and the tests', each under names of its own. A
    # test's line also has a `train_loss`, the mean since the test before: not what is drawn.
    merged: dict[tuple[str, Any], Record] = {}
    for row in kept:
        about = {name: value for name, value in row.items() if is_setting(name) or name in NAMED}
        if row["kind"] == "test":
            measured = {name: row[name] for name in TESTS if name in row}
        else:
            measured = {}
        measured[f"{row['kind']}_loss"] = row.get("loss")
        merged.setdefault((row["run"], row["update"]), {}).update({**about, **measured})
    records = list(merged.values())
    tests = [name for name in TESTS if any(name in record for record in records)]
    layout = FigureLayout(
        x="update",
        panels=panels,
        lines=lines,
        metrics=("train_loss", "test_loss", *tests),
        form="bands",
    )
    asked = replace(experiment, question=CAPTION, figure=layout)
    figure = draw(asked, records, scale)
    drawn = {form: render(figure, form) for form in formats}
    return ExtraFigure(STEM, CAPTION + note, footer(asked, records, scale), drawn, "")


def _conditions(layout: FigureLayout, rows: Sequence[Record]) -> tuple[tuple[str, ...], str]:
    """Return what tells panels apart and what lines: all settings in which trials differ."""
    keys = dict.fromkeys(key for row in rows for key in row if is_setting(key) and key != "seed")
    varied = [key for key in keys if len({str(row.get(key)) for row in rows}) > 1]
    figures = [
        name
        for some in (layout.lines, layout.panels, layout.rows, layout.x)
        for name in names_of(some)
    ]
    # Widths of a code and the like come with its kind, unless the grid is about them.
    varied = [key for key in varied if key in figures or all(key in row for row in rows)]
    varied = varied or ["core.kind"]
    named = [name for name in figures if name in varied]
    order = list(dict.fromkeys([*named, *varied]))
    lines = "encoding.kind" if "encoding.kind" in order else order[0]
    return tuple(name for name in order if name != lines) or ("core.kind",), lines


def _kept(
    rows: Sequence[Record], panels: tuple[str, ...], label: Labels
) -> tuple[Sequence[Record], str]:
    """Return the rows of a few of the panels, and a note if some were left out."""
    values = label.order(value_of(row, panels) for row in rows)
    if len(values) <= NUM_PANELS:
        return rows, ""
    blocks: dict[Any, list[Any]] = {}
    for value in values:
        blocks.setdefault(value[0], []).append(value)
    each = max(1, NUM_PANELS // len(blocks))
    found = [value for some in blocks.values() for value in _spread(some, each)]
    chosen = set(_spread(found, NUM_PANELS))
    kept = [row for row in rows if value_of(row, panels) in chosen]
    return kept, f" ({len(chosen)} of {len(values)} conditions)"


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """Choose this many values, far apart, the last among them; all if there are no more."""
    if len(values) <= count:
        return list(values)
    step = (len(values) - 1) / max(count - 1, 1)
    return [values[len(values) - 1 - round(place * step)] for place in range(count)][::-1]
