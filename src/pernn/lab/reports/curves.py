"""Learning curves of a sweep: training and test, thinned, as rows and as a further figure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pernn.lab.experiments import Experiment, FigureLayout, names_of
from pernn.lab.trials import is_missing, is_setting, records_of

from .figures import Format
from .labels import Labels
from .more_figures import Drawing

STEM = "learning_curves"
CAPTION = "How the networks learnt"
NUM_POINTS = 60
"""So many points of a trial's training, and of its tests, are drawn at most."""
NUM_PANELS = 8
"""At most this many panels are drawn per metric; of more, each core keeps its extremes."""

TESTS = ("token_accuracy", "perplexity")
"""Metrics of the tests that are drawn, beside the loss."""
NAMED = ["run", "update"]


def draw_curves(
    experiment: Experiment, rows: pd.DataFrame, scale: str, formats: Sequence[Format]
) -> Drawing:
    """Draw training and test curves: a panel per panel of the figure, mean, interval and trials.

    Args:
        experiment: Its labels and its figure's conditions are taken.
        rows: From `curves_of`.
        scale: Of the sweep.
        formats: Which files are drawn.
    """
    if rows.empty:
        return Drawing(STEM, CAPTION, "no trial has curves here")
    panels, lines = _conditions(experiment.figure, rows)
    kept, note = _kept(rows, panels, Labels(experiment.labels))
    # A record per update: the training's own lines and the tests', each under names of its own. A
    # test's line also has a `train_loss`, the mean since the test before: not what is drawn.
    is_test = kept["kind"] == "test"
    tests = [name for name in TESTS if name in kept and kept.loc[is_test, name].notna().any()]
    trained = (
        kept[~is_test].reindex(columns=[*NAMED, "loss"]).rename(columns={"loss": "train_loss"})
    )
    tested = (
        kept[is_test]
        .reindex(columns=[*NAMED, "loss", *tests])
        .rename(columns={"loss": "test_loss"})
    )
    measured = trained.merge(tested, on=NAMED, how="outer")
    settings = kept[[name for name in kept if is_setting(name) or name == "run"]]
    records = records_of(measured.merge(settings.drop_duplicates("run"), on="run"))
    layout = FigureLayout(
        x="update",
        panels=panels,
        lines=lines,
        metrics=("train_loss", "test_loss", *tests),
        form="bands",
    )
    asked = replace(experiment, question=CAPTION, figure=layout)
    return Drawing.of(STEM, asked, records, scale, formats, CAPTION + note)


def _conditions(layout: FigureLayout, rows: pd.DataFrame) -> tuple[tuple[str, ...], str]:
    """Return what tells panels apart and what lines: all settings in which trials differ."""
    keys = [key for key in rows if is_setting(key) and key != "seed"]
    # Settings are those of whole trials.
    trials = rows[["run", *keys]].drop_duplicates("run")
    varied = [key for key in keys if trials[key].map(_text).nunique() > 1]
    figures = [
        name
        for some in (layout.lines, layout.panels, layout.rows, layout.x)
        for name in names_of(some)
    ]
    # Widths of an encoding and the like come with its kind, unless the grid is about them.
    varied = [key for key in varied if key in figures or not trials[key].map(is_missing).any()]
    varied = varied or ["core.kind"]
    named = [name for name in figures if name in varied]
    order = list(dict.fromkeys([*named, *varied]))
    lines = "encoding.kind" if "encoding.kind" in order else order[0]
    return tuple(name for name in order if name != lines) or ("core.kind",), lines


def _kept(rows: pd.DataFrame, panels: tuple[str, ...], label: Labels) -> tuple[pd.DataFrame, str]:
    """Return the rows of a few of the panels, and a note if some were left out."""
    shown = [tuple(None if is_missing(x) else x for x in row) for row in _columns(rows, panels)]
    values = label.order(shown)
    if len(values) <= NUM_PANELS:
        return rows, ""
    blocks: dict[Any, list[Any]] = {}
    for value in values:
        blocks.setdefault(value[0], []).append(value)
    each = max(1, NUM_PANELS // len(blocks))
    found = [value for some in blocks.values() for value in _spread(some, each)]
    chosen = set(_spread(found, NUM_PANELS))
    kept = rows[[value in chosen for value in shown]]
    return kept, f" ({len(chosen)} of {len(values)} conditions)"


def _columns(rows: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name] if name in rows else [None] * len(rows) for name in names), strict=True)


def _text(value: Any) -> str:
    return str(None if is_missing(value) else value)


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """Choose this many values, far apart, the last among them; all if there are no more."""
    if len(values) <= count:
        return list(values)
    step = (len(values) - 1) / max(count - 1, 1)
    return [values[len(values) - 1 - round(place * step)] for place in range(count)][::-1]
