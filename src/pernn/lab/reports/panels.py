"""Panels of a figure and their axes, with scales and ticks."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from pernn.errors import ConfigError
from pernn.lab.config import grouped
from pernn.lab.experiments import Columns, Experiment, FigureLayout

from .records import Record, Records, number, sort_key
from .texts import Labels, value_of

DENSE = 16
"""More numbers than this have no ticks of their own."""

CURVE = 8
"""Fewer updates than this are no curve whose beginning could hide its end."""

CLOSE = 0.6
"""Shares whose smallest and largest are closer have an axis as long as they are."""

FLAT = 0.25
"""A panel that would take up less of its row's axis hides a difference there."""

SHARES = ("solved", "stuck", "solved_or_stuck")
"""Metrics from 0 to 1 whose names do not end in `_accuracy` or `_share`."""

VOCABULARY = "task.vocab_size"

PLAIN = "{x:,.6g}"
"""How matplotlib writes a tick's number: with thousands separated, without an exponent."""


class Scale:
    """Positions of single values on an axis, words at 0, 1, …."""

    def __init__(self, column: Columns, base: int | None, label: Labels, records: Records) -> None:
        self.column, self.base, self.label = column, base, label
        self.values = label.order(value_of(record, column) for record in records)
        self.numeric = not any(sort_key(value)[0] for value in self.values)
        if base and not (self.numeric and all(value > 0 for value in self.values)):
            raise ConfigError(f"{column} needs positive numbers for a logarithmic axis")

    def position(self, value: Any, shift: float = 0.0) -> float:
        """Place a value, moved by `shift` steps between neighbours."""
        if self.base:
            return float(value) * math.exp(shift * self._step())
        return self._place(value) + shift * self._step()

    def edges(self) -> list[float]:
        """Return the borders of cells around the values, halfway between neighbours."""
        inside = [sum(pair) / 2 for pair in pairwise(map(self.position, self.values))]
        return [self.position(self.values[0], -0.5), *inside, self.position(self.values[-1], 0.5)]

    def _place(self, value: Any) -> float:
        """Return a word's place, a number or, of a logarithmic axis, its logarithm."""
        if self.base:
            return math.log(value)
        return float(value) if self.numeric else float(self.values.index(value))

    def _step(self) -> float:
        """Return the mean distance of neighbours' places."""
        if len(self.values) < 2:
            return math.log(self.base) if self.base else 1.0
        return (self._place(self.values[-1]) - self._place(self.values[0])) / (len(self.values) - 1)

    def fit(self, axes: Axes) -> None:
        """Scale the horizontal axis, its ticks at values that fit."""
        if self.base:
            axes.set_xscale("log", base=self.base)
        edge = 0.6 if len(self.values) > 1 else 1.0
        axes.set_xlim(self.position(self.values[0], -edge), self.position(self.values[-1], edge))
        texts = self.tick(axes.xaxis)
        if len("".join(texts)) > 28:
            axes.tick_params("x", labelrotation=60, labelrotation_mode="xtick")

    def tick(self, axis: Axis) -> list[str]:
        """Set ticks at values that fit, and return their labels.

        Many numbers have round ones instead, which matplotlib labels.
        """
        if self.numeric and len(self.values) > DENSE:
            if self.base:
                tick_log(axis, self.base)
            axis.set_major_formatter(PLAIN)
            return []
        # Of numbers the others can be told; words cannot.
        shown = self.values[:: math.ceil(len(self.values) / 8) if self.numeric else 1]
        texts = [self.label(value) for value in shown]
        axis.set_ticks([self.position(value) for value in shown], labels=texts)
        axis.minorticks_off()
        return texts


def late_values(across: Iterable[Scale], layout: FigureLayout) -> set[Any]:
    """Return the updates after the training's first quarter, of other axes none."""
    values = {value for x in across for value in x.values}
    if layout.x != "update" or len(values) < CURVE:
        return set()
    return {value for value in values if value > max(values) / 4}


def begins_far_away(drawn: Sequence[float], settled: Sequence[float]) -> bool:
    """Return whether a training's beginning would hide its end."""
    if len(settled) < 2:
        return False
    return max(drawn) - min(drawn) > 3 * (max(settled) - min(settled)) > 0


def is_flat(panel: Sequence[float], row: Sequence[float]) -> bool:
    """Return whether a panel would be flat on its row's axis."""
    if not panel or len(panel) == len(row):
        return False
    return 0 < max(panel) - min(panel) < FLAT * (max(row) - min(row))


def is_share(metric: str) -> bool:
    """Return whether a metric lies in [0, 1] by nature."""
    return metric.endswith(("_accuracy", "_share")) or metric in SHARES


def fit_metric(
    axes: Axes,
    metric: str,
    values: Sequence[float],
    base: int | None,
    bounds: Sequence[float] = (),
) -> None:
    """Set the vertical axis of a metric.

    Shares go from 0 to 1, others from 0 if none is negative; shares have no logarithmic axis.
    Shares that lie close together have an axis as long as they are: a difference is to be seen.
    Bounds of intervals are kept in sight where the metric can be.
    """
    above = [value for value in (*values, *bounds) if value > 0]
    if base and above and not is_share(metric):
        margin = 1.02 * (max(above) / min(above)) ** 0.06
        axes.set_yscale("log", base=base)
        axes.set_ylim(min(above) / margin, max(above) * margin)
        tick_log(axes.yaxis, base)
    elif is_share(metric):
        shown = [*values, *(min(max(bound, 0.0), 1.0) for bound in bounds)]
        length = max(shown) - min(shown) if shown else 0.0
        if 0 < length < CLOSE:
            low, high = min(shown) - 0.12 * length, max(shown) + 0.12 * length
            axes.set_ylim(max(low, -0.03), min(high, 1.03))
        else:
            axes.set_ylim(-0.03, 1.03)
    elif values and min(values) >= 0:
        top = max(axes.get_ylim()[1], max(values) * 1.05) or 1.0
        axes.set_ylim(min([0.0, *bounds]) - 0.03 * top, top)


def tick_log(axis: Axis, base: int) -> None:
    """Put plain numbers on a logarithmic axis, at least two."""
    low, high = axis.get_view_interval()
    fine = (1.0, 2.0, 5.0) if base == 10 else (1.0, 1.5)
    axis.set_major_locator(LogLocator(base, subs=fine if high < 100 * low else (1.0,)))
    axis.set_major_formatter(PLAIN)
    axis.minorticks_off()


NUM_COLUMNS = 4
"""Panels stand side by side up to this number; further ones begin a row below."""


@dataclass(eq=False)
class Row:
    """One row of panels: a block's metric, or its differences."""

    block: Any  # value of the layout's rows
    metric: str | None  # `None` for the differences
    panels: tuple[Any, ...]  # values of the layout's panels, from the left
    axes: list[Axes] = field(default_factory=list)  # those of the panels, once there is a figure


class Grid:
    """The panels of a figure and each one's trials or table rows."""

    def __init__(self, experiment: Experiment, found: Records) -> None:
        self.experiment, self.found = experiment, found
        self.layout, self.label = experiment.figure, Labels(experiment.labels)
        layout, label = self.layout, self.label
        self.places = grouped(
            ((value_of(one, layout.rows), value_of(one, layout.panels)), one) for one in found
        )
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
        size = max(6.4, 2.9 * width + 0.6 + bar), 2.15 * len(self.rows) + 1.5
        self.figure = Figure(figsize=size, layout="constrained")
        # The axes of lines are fitted one by one.
        alone: Any = "row" if layout.form in ("heat", "scatter", "factors") else False
        axes: np.ndarray = self.figure.subplots(len(self.rows), width, sharey=alone, squeeze=False)
        for row, some in zip(self.rows, axes, strict=True):
            row.axes = list(some[: len(row.panels)])
            for unused in some[len(row.panels) :]:
                unused.remove()
        self.lowest = {panel: here for _, here, panel, _ in self.panels()}
        for _, here, panel, _ in self.panels():
            if here is not self.lowest[panel]:
                here.sharex(self.lowest[panel])
                here.tick_params("x", which="both", labelbottom=False)

    def _is_measured(self, row: Row) -> bool:
        return row.metric is None or any(
            number(one, row.metric) is not None for some in self._inside(row) for one in some
        )

    @cached_property
    def order(self) -> list[Any]:
        """The conditions that have a line, in their order."""
        return self.label.order(value_of(one, self.layout.lines) for one in self.found)

    @property
    def all_axes(self) -> list[Axes]:
        """All panels, row by row."""
        return [axes for row in self.rows for axes in row.axes]

    def fit(self) -> None:
        """Fit the horizontal axes."""
        for panel, axes in self.lowest.items():
            self.across[panel].fit(axes)

    @cached_property
    def across(self) -> dict[Any, Scale]:
        """The horizontal axis of each value of the layout's panels."""
        layout = self.layout
        columns = grouped((value_of(one, layout.panels), one) for one in self.found)
        return {
            panel: Scale(layout.x, layout.x_base, self.label, columns[panel])
            for panel in self.lowest
        }

    def panels(self) -> Iterator[tuple[Row, Axes, Any, list[Record]]]:
        """Yield each panel's row, axes, value and records."""
        for row in self.rows:
            yield from zip(repeat(row), row.axes, row.panels, self._inside(row), strict=False)

    def _inside(self, row: Row) -> list[list[Record]]:
        """Return the records of each panel of a row."""
        return [self.places.get((row.block, panel), []) for panel in row.panels]

    def name(self) -> None:
        """Name panels, blocks of rows and horizontal axes."""
        layout = self.layout
        # Where the title on the right is long, that on the left stands above it.
        above = "\n" if layout.form == "scatter" else ""
        named: set[Any] = set()
        of_block, of_panel = self._sizes(0), self._sizes(1)
        for row in self.rows:
            for axes, panel in zip(row.axes, row.panels, strict=True):
                if panel not in named:
                    title = self.label.condition(layout.panels, panel, separator="\n")
                    title += of_panel.get(panel, "")
                    axes.set_title(_wrapped(title, 32) + above, loc="left", fontweight="bold")
                named.add(panel)
            if layout.rows:
                block = self.label.condition(layout.rows, row.block, separator="\n")
                block = _wrapped(block + of_block.get(row.block, ""), 26)
                row.axes[0].set_ylabel(f"{block}\n{row.axes[0].get_ylabel()}")
        for axes in self.lowest.values():
            axes.set_xlabel(self.label(layout.x))
            axes.tick_params(labelbottom=True)

    def _sizes(self, side: int) -> dict[Any, str]:
        """Tell the K of each block (side 0) or panel (1), if each has one and not all the same."""
        sizes: dict[Any, set[Any]] = {}
        for place, records in self.places.items():
            sizes.setdefault(place[side], set()).update(one.get(VOCABULARY) for one in records)
        several = len(set().union(*sizes.values())) > 1 and VOCABULARY not in self.layout.shown
        if not several or any(len(found) > 1 for found in sizes.values()):
            return {}
        return {value: f", K = {self.label(*found)}" for value, found in sizes.items()}


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
