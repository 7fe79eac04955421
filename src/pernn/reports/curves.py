"""Learning curves of a sweep: training and test, thinned, as rows and as a further figure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pernn.experiments import Experiment, FigureLayout, names_of

from .figures import Format, draw, render
from .labels import Labels, footer
from .more_figures import ExtraFigure
from .records import Record, sort_key
from .unrolled import is_setting

STEM = "learning_curves"
CAPTION = "How the networks learnt"
NUM_POINTS = 60
"""So many points of a trial's training, and of its tests, are drawn at most."""
NUM_ROWS = 3
"""So many further conditions are drawn: the first, the middle and the last."""

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
    panels, lines, others = _conditions(experiment.figure, rows)
    kept, note = _kept(rows, others, Labels(experiment.labels))
    # Training and test get columns of their own, so that each has a row of panels.
    found = [
        {
            **{name: value for name, value in row.items() if name not in ("loss", "kind")},
            **({} if row["kind"] == "test" else {"token_accuracy": None}),
            f"{row['kind']}_loss": row.get("loss"),
        }
        for row in kept
    ]
    tests = [name for name in ("token_accuracy", "perplexity") if any(name in r for r in found)]
    layout = FigureLayout(
        x="update",
        panels=panels,
        lines=lines,
        rows=others or None,
        metrics=("train_loss", "test_loss", *tests),
        form="bands",
    )
    # Training and test of one update are one record, or they would compete for a place.
    merged: dict[tuple[str, Any], Record] = {}
    for row in found:
        known = {name: value for name, value in row.items() if value is not None}
        merged.setdefault((row["run"], row["update"]), {}).update(known)
    about = replace(experiment, question=CAPTION, figure=layout)
    records = list(merged.values())
    figure = draw(about, records, scale)
    drawn = {form: render(figure, form) for form in formats}
    return ExtraFigure(STEM, CAPTION + note, footer(about, records, scale), drawn, "")


def _conditions(
    layout: FigureLayout, rows: Sequence[Record]
) -> tuple[str, str, str | tuple[str, ...]]:
    """Return what are panels, lines and blocks of rows: all settings in which trials differ."""
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
    rest = [name for name in order if name != lines]
    panels = rest[0] if rest else "core.kind"
    others = tuple(rest[1:])
    return panels, lines, others[0] if len(others) == 1 else others


def _kept(
    rows: Sequence[Record], others: str | tuple[str, ...], label: Labels
) -> tuple[Sequence[Record], str]:
    """Return the rows of a few of the further conditions, and a note if some were left out."""
    names = names_of(others or None)
    values = sorted(
        {tuple(row.get(name) for name in names) for row in rows},
        key=lambda one: [sort_key(part) for part in one],
    )
    if len(values) <= NUM_ROWS:
        return rows, ""
    chosen = [values[0], values[len(values) // 2], values[-1]]
    kept = [row for row in rows if tuple(row.get(name) for name in names) in chosen]
    note = f" ({len(chosen)} of {len(values)} values of {', '.join(map(label, names))})"
    return kept, note
