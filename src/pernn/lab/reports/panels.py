"""Panels of a figure and their axes, with scales and ticks."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from pernn.errors import ConfigError
from pernn.lab.experiments import Columns, Experiment, FigureLayout, names_of

from .records import Record, number, sort_key
from .texts import Labels, value_of

DENSE = 16
"""More numbers than this have no ticks of their own."""

MANY = 12
"""So many words on an axis stand upright: slanted they would run into each other."""

CURVE = 8
"""Fewer updates than this are no curve whose beginning could hide its end."""

CLOSE = 0.6
"""Shares whose smallest and largest are closer have an axis as long as they are."""

FLAT = 0.25
"""A panel that would take up less of its row's axis hides a difference there."""

SHARES = ("solved", "stuck", "solved_or_stuck")
"""Metrics from 0 to 1 whose names do not end in `_accuracy` or `_share`."""

VOCABULARY = "task.vocab_size"

STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
"""Ticks within a power of ten, the more the shorter the axis is."""


class Scale:
    """Positions of single values on an axis, words at 0, 1, ….

    Args:
        column: Whose values are on the axis.
        base: Of the logarithmic axis; linear if absent.
        label: Names and orders the values.
        records: Those whose values are on the axis.

    Raises:
        ConfigError: If a logarithmic axis is to have anything but positive numbers.
    """

    def __init__(
        self, column: Columns, base: int | None, label: Labels, records: Sequence[Record]
    ) -> None:
        self.column, self.base, self.label = column, base, label
        self.values = label.order(value_of(record, column) for record in records)
        self.numeric = not any(sort_key(value)[0] for value in self.values)
        if base and not (self.numeric and all(value > 0 for value in self.values)):
            raise ConfigError(f"{column} needs positive numbers for a logarithmic axis")

    @property
    def is_dense(self) -> bool:
        """True if there are too many numbers for a tick each."""
        return self.numeric and len(self.values) > DENSE

    def position(self, value: Any, shift: float = 0.0) -> float:
        """Place a value, moved by `shift` steps between neighbours."""
        if self.base:
            return float(value) * math.exp(shift * self._step())
        return self._place(value) + shift * self._step()

    def edges(self) -> list[float]:
        """Return the borders of cells, one more than there are values.

        They lie halfway between neighbours, as far outside the first and the last as inside.
        """
        places = [self._place(value) for value in self.values]
        gaps = [right - left for left, right in pairwise(places)]
        gaps = gaps or [2 * self._step() if self.base else 1.0]
        inside = [(left + right) / 2 for left, right in pairwise(places)]
        found = [places[0] - gaps[0] / 2, *inside, places[-1] + gaps[-1] / 2]
        return [math.exp(edge) for edge in found] if self.base else found

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

    def fit(self, axes: Axes, *, cells: bool = False) -> None:
        """Scale the horizontal axis, its ticks at values that fit.

        Args:
            axes: Of the panel.
            cells: Whether the axis ends with the cells round the values, not some way outside.
        """
        if self.base:
            axes.set_xscale("log", base=self.base)
        edge = 0.6 if len(self.values) > 1 else 1.0
        ends = [self.position(self.values[0], -edge), self.position(self.values[-1], edge)]
        borders = self.edges() if cells else ends
        axes.set_xlim(borders[0], borders[-1])
        shown = self._tick(axes.xaxis)
        if not shown:
            return
        slanted = max(len(self.label(value)) for value in shown) * self._room(shown) > 28
        axes.set_xticklabels(
            [self.label(value) for value in shown],
            rotation=0 if not slanted else 40 if len(shown) < MANY else 90,
            ha="right" if slanted else "center",
            va="top" if not slanted or len(shown) < MANY else "center",
            rotation_mode="anchor",
        )

    def fit_upright(self, axes: Axes) -> None:
        """Scale the vertical axis to cells, its ticks at values that fit."""
        if self.base:
            axes.set_yscale("log", base=self.base)
        borders = self.edges()
        axes.set_ylim(borders[0], borders[-1])
        names = names_of(self.column)
        joint = len(names) > 1
        if shown := self._tick(axes.yaxis):
            texts = [self.label.condition(names, v) if joint else self.label(v) for v in shown]
            axes.set_yticklabels(texts)

    def _tick(self, axis: Axis) -> list[Any]:
        """Set the ticks; return the values that have one, none where the numbers are round."""
        if self.is_dense and self.base:
            tick_log(axis, (self.values[0], self.values[-1]), self.base)
            return []
        if self.is_dense:
            nbins = 7 if abs(self.values[-1]) < 10_000 else 4
            tick_round(axis, nbins, [1, 2, 4, 5, 8, 10])
            return []
        # Of numbers the others can be told; words cannot.
        shown = self.values[:: math.ceil(len(self.values) / 8) if self.numeric else 1]
        axis.set_major_locator(FixedLocator([self.position(value) for value in shown]))
        axis.set_minor_locator(FixedLocator([self.position(value) for value in self.values]))
        axis.set_minor_formatter(NullFormatter())
        return shown

    def _room(self, shown: Sequence[Any]) -> float:
        """Count how many labels of equal width the closest two ask room for."""
        places = [self._place(value) for value in shown]
        gaps = [right - left for left, right in pairwise(places)]
        return (places[-1] - places[0]) / min(gaps) + 1 if gaps else 1.0


def late_values(across: Sequence[Scale], layout: FigureLayout) -> set[Any]:
    """Return the updates after the first quarter of the training.

    Of any other axis there are none.
    """
    values = {value for x in across for value in x.values}
    if layout.x != "update" or len(values) < CURVE:
        return set()
    return {value for value in values if value > max(values) / 4}


def begins_far_away(drawn: Sequence[float], settled: Sequence[float]) -> bool:
    """Return whether a training's beginning would hide its end."""
    if len(settled) < 2:
        return False
    return max(drawn) - min(drawn) > 3 * (max(settled) - min(settled)) > 0


def fit_settled(
    axes: Axes, drawn: Sequence[float], settled: Sequence[float], base: int | None
) -> None:
    """Fit a vertical axis to late values, naming the others' reach.

    Args:
        axes: Of one panel of the row.
        drawn: All values.
        settled: Those after the first quarter of the training.
        base: Of the logarithmic axis; linear if absent.
    """
    low, high = min(settled), max(settled)
    if base:
        ends = log_ends("what is drawn", settled)
        axes.set_yscale("log", base=base)
        tick_log(axes.yaxis, ends, base)
    else:
        # 0 stays in sight: it is where a difference ends, and where a loss would.
        low, high = (min(low, 0.0), max(high, 0.0)) if low * high <= 0 else (low, high)
        margin = 0.12 * (high - low)
        ends = low - margin, high + margin
    axes.set_ylim(*ends)
    outside = [value for value in drawn if not ends[0] <= value <= ends[1]]
    words = f"beginning, out of range: {min(outside):.3g} … {max(outside):.3g}" if outside else ""
    axes.text(
        0.98,
        0.97,
        words.replace("-", "−"),
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=6.5,
        color="#555555",
    )


def is_flat(panel: Sequence[float], row: Sequence[float]) -> bool:
    """Return whether a panel would be flat on its row's axis."""
    if not panel or len(panel) == len(row):
        return False
    return 0 < max(panel) - min(panel) < FLAT * (max(row) - min(row))


def is_share(metric: str) -> bool:
    """Return whether a metric lies in [0, 1] by nature."""
    return metric.endswith(("_accuracy", "_share")) or metric in SHARES


def shows_ratio(layout: FigureLayout) -> bool:
    """Return whether a contrast is a ratio, its axis being logarithmic."""
    return bool(layout.y_base) and not is_share(layout.metrics[0])


def fit_metric(
    axes: Axes,
    metric: str,
    values: Sequence[float],
    base: int | None,
    bounds: Sequence[float] = (),
) -> None:
    """Set the vertical axis of a metric.

    Shares go from 0 to 1, others from 0 if none is negative.

    Shares that lie close together have an axis as long as they are: a difference is to be seen.

    Args:
        axes: One of the panels that share it.
        metric: What is on it.
        values: All that are drawn.
        base: Of the logarithmic axis; shares have none.
        bounds: Of their intervals, kept in sight where the metric can be.

    Raises:
        ConfigError: If a logarithmic axis is to have anything but positive numbers.
    """
    if base and values and not is_share(metric):
        ends = log_ends(metric, [*values, *(bound for bound in bounds if bound > 0)])
        axes.set_yscale("log", base=base)
        axes.set_ylim(*ends)
        tick_log(axes.yaxis, ends, base)
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


def mark_cut(axes: Axes) -> None:
    """Draw an arrowhead where an error bar goes on beyond the axis."""
    low, high = axes.get_ylim()
    for bars in axes.containers:
        line, _, (parts,) = bars
        ends = [(x, start, end) for (x, start), (_, end) in parts.get_segments()]
        cut = [(x, high, "^") for x, start, end in ends if start <= high < end]
        cut += [(x, low, "v") for x, start, end in ends if start < low <= end]
        look = {"color": line.get_color(), "markersize": 4, "gid": parts.get_gid()}
        for x, end, marker in cut:
            axes.plot(x, end, marker=marker, transform=parts.get_transform(), clip_on=False, **look)


def log_ends(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis, a little outside the values.

    Raises:
        ConfigError: If a value is not positive.
    """
    low, high = min(values), max(values)
    if low <= 0:
        raise ConfigError(f"{metric} needs positive numbers for a logarithmic axis, got {low:g}")
    margin = (high / low) ** 0.06 if high > low else 1.5
    return low / margin, high * margin


def tick_round(axis: Axis, nbins: int, steps: list[float]) -> None:
    """Put round numbers on a linear axis."""
    axis.set_major_locator(MaxNLocator(nbins=nbins, steps=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def tick_log(axis: Axis, ends: tuple[float, float], base: int) -> None:
    """Put plain numbers on a logarithmic axis, at least two."""
    axis.set_major_locator(FixedLocator(log_ticks(*ends, base)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_locator(FixedLocator([]))


def log_ticks(low: float, high: float, base: int) -> list[float]:
    """Choose two to seven ticks of a logarithmic axis.

    Args:
        low: Where the axis begins, positive.
        high: Where it ends, above.
        base: Whose powers are round.
    """
    first, last = (math.floor(math.log(end, base)) for end in (low, high))
    found: list[float] = []
    for steps in STEPS if base == 10 else STEPS[:1]:
        # Powers below 1 as quotients: 10 ** -1 * 3 is not 0.3.
        ticks = [
            step * base**power if power >= 0 else step / base**-power
            for power in range(first, last + 1)
            for step in steps
        ]
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) >= 3:
            return found[:: math.ceil(len(found) / 7)]
    even = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in even if low <= tick <= high]


T = TypeVar("T")

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
            number(one, row.metric) is not None for some in self._inside(row) for one in some
        )

    @property
    def all_axes(self) -> list[Axes]:
        """All panels, row by row."""
        return [axes for some in self.axes for axes in some]

    def scales(self) -> list[Scale]:
        """Return the horizontal axis of each column of panels."""
        layout = self.layout
        return [Scale(layout.x, layout.x_base, self.label, column) for column in self.columns]

    def panels(self, across: Sequence[T]) -> Iterator[tuple[Row, Axes, T, list[Record]]]:
        """Yield each panel's row, axes, records and its column's own."""
        for row, some in zip(self.rows, self.axes, strict=True):
            for axes, own, records in zip(some, across, self._inside(row), strict=False):
                yield row, axes, own, records

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
        for row, axes_of_row in zip(self.rows, self.axes, strict=True):
            for axes, panel in zip(axes_of_row, row.panels, strict=True):
                if panel not in named:
                    title = self.label.condition(layout.panels, panel, separator="\n")
                    title += of_panel.get(panel, "")
                    axes.set_title(_wrapped(title, 32) + above, loc="left", fontweight="bold")
                named.add(panel)
            if layout.rows:
                block = self.label.condition(layout.rows, row.block, separator="\n")
                _name_block(axes_of_row[0], block + of_block.get(row.block, ""))
        for axes in self.lowest:
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
