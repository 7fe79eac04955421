"""Drawings of a report: the experiment's figure, further ones, learning curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from pernn.lab.config import grouped
from pernn.lab.experiments import Columns, Experiment, FigureLayout, names_of
from pernn.lab.trials import Trial, is_missing, lines_of, records_of, settings_of

from .figures import LINK, Format, draw, inline, render
from .records import Records, matches
from .texts import SETTINGS, Labels, footer

FORMATS: tuple[Format, ...] = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """One figure, as files and as part of a page."""

    stem: str  # its file name without the ending
    caption: str
    footer: str  # how the trials were run, and what its signs mean
    contents: Mapping[str, bytes]  # file name → content
    inlined: str  # the drawing as part of a page, from `inline`

    @staticmethod
    def of(
        stem: str,
        experiment: Experiment,
        records: Records,
        scale: str,
        formats: Sequence[Format],
    ) -> "Drawing":
        """Draw an experiment's figure, its question as the caption."""
        figure = draw(experiment, records, scale)
        return Drawing(
            stem,
            experiment.question,
            footer(experiment, records, scale),
            {f"{stem}.{form}": render(figure, form) for form in formats},
            inline(figure, stem),
        )

    @property
    def sentence(self) -> str:
        """The caption with a full stop, unless it is a question."""
        return self.caption if self.caption.endswith(("?", ".")) else f"{self.caption}."

    def inline(self, prefix: str = "") -> str:
        """Return it as part of a page, its ids prefixed."""
        return LINK.sub(rf"\g<1>{prefix}", self.inlined)


def draw_extra_figures(
    experiment: Experiment,
    records: Records,
    scale: str = "",
    formats: Sequence[Format] = FORMATS,
) -> list[Drawing]:
    """Draw the further figures of an experiment, in its order.

    One whose rows no finished trial has says so.
    """
    label, found = Labels(experiment.labels), []
    for stem, layout in experiment.more_figures.items():
        plain = stem.replace("_", " ")
        caption = label(stem) if stem in experiment.labels else plain[0].upper() + plain[1:]
        shown = [record for record in records if matches(record, layout.where)]
        if layout.where and len(shown) in (0, len(records)):
            continue
        about = replace(experiment, question=caption, figure=replace(layout, where={}))
        found.append(Drawing.of(stem, about, shown, scale, formats))
    return found


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
    experiment: Experiment, trials: Sequence[Trial], scale: str, formats: Sequence[Format]
) -> Drawing:
    """Draw training and test curves: mean, interval and trials.

    At least one trial is needed, and each has lines of metrics.
    """
    settings = settings_of(trials)
    panels, lines = _conditions(experiment.figure, settings)
    settings, note = _kept(settings, panels, experiment)
    # Only of these, as there can be tens of thousands.
    kept = lines_of([one for one in trials if one.run in settings.index], NUM_POINTS)
    kept = kept.reindex(columns=[*NAMED, "kind", "loss", *TESTS])
    is_test = kept["kind"] == "test"
    tests = [name for name in TESTS if kept.loc[is_test, name].notna().any()]
    # The training's own lines and the tests', each under names of its own.
    kept["train_loss"], kept["test_loss"] = kept["loss"].mask(is_test), kept["loss"].where(is_test)
    kept[tests] = kept[tests].where(is_test)
    # What the figure and its footer name, as there can be 100,000 records.
    said = {"seed", "preset", *names_of(lines), *panels, *(name for name, _ in SETTINGS)}
    settings = settings.loc[:, settings.columns.isin(said)].rename_axis("run").reset_index()
    measured = kept[[*NAMED, "train_loss", "test_loss", *tests]]
    records = records_of(measured.merge(settings, on="run"))
    metrics = ("train_loss", "test_loss", *tests)
    layout = FigureLayout("update", panels, lines, metrics, form="bands")
    asked = replace(experiment, question=CAPTION + note, figure=layout)
    return Drawing.of(STEM, asked, records, scale, formats)


def _conditions(layout: FigureLayout, settings: pd.DataFrame) -> tuple[tuple[str, ...], Columns]:
    """Return what tells panels apart and what lines: all settings in which trials differ."""
    keys = [key for key in settings if key != "seed"]
    varied = [key for key in keys if settings[key].map(str).nunique() > 1]
    figures = [
        name
        for some in (layout.lines, layout.panels, layout.rows, layout.x)
        for name in names_of(some)
    ]
    # Widths of an encoding and the like come with its kind, unless the grid is about them, or
    # they alone tell trials apart.
    few = [key for key in varied if key in figures or not settings[key].map(is_missing).any()]
    alike = settings.reindex(columns=[*few, "seed"]).map(str).duplicated().any()
    varied = (varied if alike else few) or ["core.kind"]
    named = [name for name in figures if name in varied]
    order = list(dict.fromkeys([*named, *varied]))
    # Codes that the task gives stand for an encoding.
    lines = [name for name in ("encoding.kind", "task.codes") if name in order] or order[:1]
    others = tuple(name for name in order if name not in lines)
    return others or ("core.kind",), tuple(lines) if lines[1:] else lines[0]


def _kept(
    settings: pd.DataFrame, panels: tuple[str, ...], experiment: Experiment
) -> tuple[pd.DataFrame, str]:
    """Return the trials of a few of the panels, and a note if some were left out."""
    label = Labels(experiment.labels)
    found = settings.reindex(columns=[*panels]).itertuples(index=False)
    shown = [tuple(None if is_missing(x) else x for x in row) for row in found]
    values = label.order(shown)
    if len(values) <= NUM_PANELS:
        return settings, ""
    # Those with seeds that are judged before those of seeds that choose alone.
    seeds = zip(shown, settings["seed"], strict=True)
    judged = {value for value, seed in seeds if seed not in experiment.choosing}
    blocks = grouped((value[0], value) for value in label.order(judged or shown))
    each = max(1, NUM_PANELS // len(blocks))
    extremes = [value for some in blocks.values() for value in _spread(some, each)]
    chosen = set(_spread(extremes, NUM_PANELS))
    kept = settings[[value in chosen for value in shown]]
    return kept, f" ({len(chosen)} of {len(values)} conditions)"


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """Choose this many values, far apart, the last among them; all if there are no more."""
    if len(values) <= count:
        return list(values)
    step = (len(values) - 1) / max(count - 1, 1)
    return [values[len(values) - 1 - round(place * step)] for place in range(count)][::-1]
