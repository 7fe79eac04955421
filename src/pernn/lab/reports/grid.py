"""Panels of a figure, in rows of metrics and blocks."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pernn.lab.experiments import Experiment

from .records import Record, number
from .scales import Scale
from .texts import Labels, value_of

NUM_COLUMNS = 4
"""Panels stand side by side up to this number; further ones begin a row below."""


@dataclass(frozen=True)
class Row:
    """One row of panels: a block's metric, or its differences.

    Attributes:
        block: Value of the layout's rows.
        metric: `None` for the differences.
        panels: Values of the layout's panels, from the left.
    """

    block: Any
    metric: str | None
    panels: tuple[Any, ...]


class Grid:
    """The panels of a figure and the records of each.

    Args:
        experiment: Its layout says what the panels are.
        found: Trials, or rows of their tables; at least one.
    """

    def __init__(self, experiment: Experiment, found: Sequence[Record]) -> None:
        self.experiment, self.found = experiment, found
        self.layout, self.label = experiment.figure, Labels(experiment.labels)
        layout, label = self.layout, self.label
        self.places: dict[tuple[Any, Any], list[Record]] = {}
        for one in found:
            place = value_of(one, layout.rows), value_of(one, layout.panels)
            self.places.setdefault(place, []).append(one)
        panels = label.order(panel for _, panel in self.places)
        width = math.ceil(len(panels) / math.ceil(len(panels) / NUM_COLUMNS))
        wrapped = [tuple(panels[i : i + width]) for i in range(0, len(panels), width)]
        metrics = (*layout.metrics, None) if layout.contrast else layout.metrics
        if layout.form == "factors":
            metrics = layout.metrics[:1]
        if layout.form == "difference":
            metrics = (None,)
        blocks = label.order(block for block, _ in self.places)
        rows = [Row(b, metric, some) for some in wrapped for b in blocks for metric in metrics]
        # Where a block's trials do not have a metric, its row is left out.
        self.rows = [row for row in rows if self._is_measured(row)] or rows
        bar = 0.8 if layout.form == "heat" else 0.0
        self.figure = Figure(
            figsize=(
                max(6.4, 2.9 * len(wrapped[0]) + 0.6 + bar),
                2.15 * len(self.rows) + 1.5,
            ),
            layout="constrained",
        )
        # The axes of lines are fitted one by one.
        alone: Any = "row" if layout.form in ("heat", "scatter", "factors") else False
        axes: np.ndarray = self.figure.subplots(
            len(self.rows), len(wrapped[0]), sharex="col", sharey=alone, squeeze=False
        )
        self.axes = [
            list(some[: len(row.panels)]) for row, some in zip(self.rows, axes, strict=True)
        ]
        for row, some in zip(self.rows, axes, strict=True):
            for unused in some[len(row.panels) :]:
                unused.remove()
        self.columns = [
            [record for record in found if value_of(record, layout.panels) in panels[i::width]]
            for i in range(len(wrapped[0]))
        ]
        self.lowest = [
            [some[i] for some in self.axes if i < len(some)][-1] for i in range(len(wrapped[0]))
        ]

    def _is_measured(self, row: Row) -> bool:
        return row.metric is None or any(
            number(one, row.metric) is not None for some in self.inside(row) for one in some
        )

    @property
    def all_axes(self) -> list[Axes]:
        """All panels, row by row."""
        return [axes for some in self.axes for axes in some]

    def scales(self) -> list[Scale]:
        """Return the horizontal axis of each column of panels."""
        layout = self.layout
        return [Scale(layout.x, layout.x_base, self.label, column) for column in self.columns]

    def inside(self, row: Row) -> list[list[Record]]:
        """Return the records of each panel of a row."""
        return [self.places.get((row.block, panel), []) for panel in row.panels]

    def name(self) -> None:
        """Name panels, blocks of rows and horizontal axes."""
        layout = self.layout
        # Where the title on the right is long, that on the left stands above it.
        above = "\n" if layout.form == "scatter" else ""
        named: set[Any] = set()
        for row, axes_of_row in zip(self.rows, self.axes, strict=True):
            for axes, panel in zip(axes_of_row, row.panels, strict=True):
                title = self.label.condition(layout.panels, panel, separator="\n")
                if panel not in named:
                    axes.set_title(_wrapped(title, 32) + above, loc="left", fontweight="bold")
                named.add(panel)
            if layout.rows:
                block = self.label.condition(layout.rows, row.block, separator="\n")
                _name_block(axes_of_row[0], block)
        for axes in self.lowest:
            axes.set_xlabel(self.label(layout.x))
            axes.tick_params(labelbottom=True)


def _name_block(axes: Axes, name: str) -> None:
    axes.annotate(
        _wrapped(name, 26),
        xy=(0, 0.5),
        xycoords=axes.yaxis.label,
        xytext=(-3, 0),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="center",
        fontsize=9.5,
        fontweight="bold",
    )


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
