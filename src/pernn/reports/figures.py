"""Figures: an experiment's layout drawn from its records, the same bytes every time."""

import io
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pernn.experiments import Experiment

from .escaping import shorten
from .factors import draw_factors
from .heat import add_colour_bar, collect_cells, colours, draw_cells
from .labels import SEPARATOR, Labels, footer_items, value_of
from .marks import draw_bands, draw_points, draw_violins
from .records import Record, number
from .scales import Scale, begins_far_away, fit_metric, fit_settled, is_share, late_values
from .scatter import collect_pairs, draw_scatter, fit_number
from .series import Series, collect, differences, line_order
from .unrolled import unroll

Format = Literal["svg", "pdf", "png"]
METADATA: dict[Format, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": dict.fromkeys(("Software",)),
}
"""What matplotlib writes about itself and the day: left out, so that equal data are equal bytes."""

STYLE: dict[str, Any] = {
    "svg.hashsalt": "pernn",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 200.0,
}

FORMS: dict[str, Callable[[Axes, Scale, Sequence[Series]], None]] = {
    "points": draw_points,
    "bands": draw_bands,
    "violins": draw_violins,
}

LONGEST = 300
"""Characters of a title."""

CHANCE = "Chance, 1 / K"


@dataclass(frozen=True)
class Row:
    """One row of panels: a metric, or the differences of the first, of one block."""

    block: Any
    metric: str | None


def draw(experiment: Experiment, records: Sequence[Record], scale: str = "") -> Figure:
    """Draw panels × metrics in the layout's form, with n.

    Args:
        experiment: Its layout and labels say what is drawn and how it is called.
        records: Finished trials; none gives a figure that says so.
        scale: Of the sweep, said in the caption; empty if it has none.

    Returns:
        The figure, not attached to any window system.

    Raises:
        ConfigError: If two trials compete for one point, or the layout cannot be drawn.
        CorruptError: If the layout's table is malformed.
    """
    layout = experiment.figure
    with drawing():
        if not records:
            return _empty(experiment, "no finished trials yet")
        found = unroll(records, layout.table)
        if not found:
            return _empty(experiment, f"no finished trial has a table {layout.table!r}")
        grid = Grid(experiment, found)
        DRAWN.get(layout.form, _draw_lines)(grid)
        grid.name()
        _frame(
            grid.figure, experiment, list(grid.axes.flat), footer_items(experiment, records, scale)
        )
        return grid.figure


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
        self.panels = label.order(value_of(record, layout.panels) for record in found)
        metrics = (*layout.metrics, None) if layout.contrast else layout.metrics
        if layout.form == "factors":
            metrics = layout.metrics[:1]
        blocks = label.order(value_of(record, layout.rows) for record in found)
        rows = [Row(block, metric) for block in blocks for metric in metrics]
        # Where a block's trials do not have a metric, its row is left out.
        self.rows = [row for row in rows if self._is_measured(row)] or rows
        bar = 0.8 if layout.form == "heat" else 0.0
        self.figure = Figure(
            figsize=(
                max(6.4, 2.9 * len(self.panels) + 0.6 + bar),
                2.15 * len(self.rows) + 1.5,
            ),
            layout="constrained",
        )
        self.axes: np.ndarray = self.figure.subplots(
            len(self.rows), len(self.panels), sharex="col", sharey="row", squeeze=False
        )
        self.columns = [
            [record for record in found if value_of(record, layout.panels) == panel]
            for panel in self.panels
        ]

    def _is_measured(self, row: "Row") -> bool:
        inside = (one for one in self.found if value_of(one, self.layout.rows) == row.block)
        return row.metric is None or any(number(one, row.metric) is not None for one in inside)

    def scales(self) -> list[Scale]:
        """Return the horizontal axis of each column of panels."""
        layout = self.layout
        return [Scale(layout.x, layout.x_base, self.label, column) for column in self.columns]

    def inside(self, row: Row) -> list[list[Record]]:
        """Return the records of each panel of a row."""
        return [
            [one for one in column if value_of(one, self.layout.rows) == row.block]
            for column in self.columns
        ]

    def name(self) -> None:
        """Name panels, blocks of rows and horizontal axes."""
        layout = self.layout
        # Where the title on the right is long, that on the left stands above it.
        above = "\n" if layout.form == "scatter" else ""
        for axes, panel in zip(self.axes[0], self.panels, strict=True):
            title = self.label.condition(layout.panels, panel, separator="\n")
            axes.set_title(_wrapped(title, 32) + above, loc="left", fontweight="bold")
        for axes in self.axes[-1]:
            axes.set_xlabel(self.label(layout.x))
        if layout.rows:
            for axes, row in zip(self.axes[:, 0], self.rows, strict=True):
                _name_block(axes, self.label.condition(layout.rows, row.block, separator="\n"))


def render(figure: Figure, form: Format) -> bytes:
    """Return a figure as a file's content; the same figure always gives the same bytes.

    Args:
        figure: From `draw`.
        form: `svg` and `pdf` for print, `png` (200 dots per inch) for the screen.
    """
    content = io.BytesIO()
    with drawing():
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()


def _draw_lines(grid: Grid) -> None:
    experiment, layout = grid.experiment, grid.layout
    order, across = line_order(experiment, grid.found), grid.scales()
    late = late_values(across, layout)
    drawn: dict[Row, list[float]] = {row: [] for row in grid.rows}
    settled: dict[Row, list[float]] = {row: [] for row in grid.rows}
    for row, axes_of_row in zip(grid.rows, grid.axes, strict=True):
        violins = _has_violins(grid, row)
        form = "points" if layout.form == "violins" and not violins else layout.form
        for axes, x, records in zip(axes_of_row, across, grid.inside(row), strict=True):
            if row.metric is None:
                series = differences(experiment, records, order)
                axes.axhline(0, color="#000000", linewidth=0.8)
                axes.margins(y=0.12)
            else:
                series = collect(experiment, records, row.metric, order, distributions=violins)
            FORMS[form](axes, x, series)
            counts = [len(values) for line in series for values in line.points.values()]
            _count(axes, counts)
            drawn[row] += [value for line in series for value in line.values]
            settled[row] += [value for line in series for value in line.values_at(late)]
        axes_of_row[0].set_ylabel(_quantity(experiment, row.metric))
    _fit_rows(grid, across, drawn, settled)
    for axes, x in zip(grid.axes[-1], across, strict=True):
        x.fit(axes)


def _fit_rows(
    grid: Grid,
    across: Sequence[Scale],
    drawn: Mapping[Row, list[float]],
    settled: Mapping[Row, list[float]],
) -> None:
    """Fit the vertical axis of each row to the values drawn; blocks of rows are compared by eye."""
    layout = grid.layout
    for row, axes_of_row in zip(grid.rows, grid.axes, strict=True):
        panels, values = list(axes_of_row), drawn[row]
        is_of_shares = bool(row.metric and is_share(row.metric))
        if is_of_shares:
            alike = [other for other in grid.rows if other.metric == row.metric]
            values = [value for other in alike for value in drawn[other]]
        if begins_far_away(values, settled[row]) and not is_of_shares:
            fit_settled(panels, values, settled[row], layout.y_base if row.metric else None)
        elif row.metric is not None:
            free = _has_violins(grid, row)
            fit_metric(panels[0], row.metric, values, layout.y_base, free=free)
        if row.metric == "token_accuracy" and panels[0].get_ylim()[0] < 0:
            _draw_chance(panels, across)


def _has_violins(grid: Grid, row: Row) -> bool:
    return grid.layout.form == "violins" and row.metric == grid.layout.metrics[0]


def _draw_heat(grid: Grid) -> None:
    layout, across = grid.layout, grid.scales()
    (metric,) = layout.metrics
    y = Scale(layout.lines, layout.y_base, grid.label, grid.found)
    panels = [
        collect_cells(layout, x, y, records, metric)
        for row in grid.rows
        for x, records in zip(across, grid.inside(row), strict=True)
    ]
    colour = colours(panels)
    for axes, x, cells in zip(grid.axes.flat, across * len(grid.rows), panels, strict=True):
        draw_cells(axes, x, y, cells, colour)
        _count(axes, cells.counts)
    for axes, x in zip(grid.axes[-1], across, strict=True):
        x.fit(axes, cells=True)
    for axes in grid.axes[:, 0]:
        y.fit_upright(axes)
        axes.set_ylabel(grid.label(layout.lines))
    add_colour_bar(grid.figure, list(grid.axes.flat), colour, grid.label(metric))


def _draw_scatters(grid: Grid) -> None:
    layout = grid.layout
    order = line_order(grid.experiment, grid.found)
    across: list[list[float]] = [[] for _ in grid.panels]
    for row, axes_of_row in zip(grid.rows, grid.axes, strict=True):
        metric, upwards = str(row.metric), []
        for axes, records, along in zip(axes_of_row, grid.inside(row), across, strict=True):
            points = collect_pairs(layout, records, metric)
            draw_scatter(axes, grid.experiment, points, order)
            along += [point.x for point in points]
            upwards += [point.y for point in points]
        fit_metric(axes_of_row[0], metric, upwards, layout.y_base, free=not is_share(metric))
        axes_of_row[0].set_ylabel(_quantity(grid.experiment, metric))
    for axes, along in zip(grid.axes[-1], across, strict=True):
        fit_number(axes, layout.x, along, layout.x_base)


def _draw_factors(grid: Grid) -> None:
    layout, across = grid.layout, grid.scales()
    for row, axes_of_row in zip(grid.rows, grid.axes, strict=True):
        for axes, x, records in zip(axes_of_row, across, grid.inside(row), strict=True):
            _count(axes, draw_factors(axes, grid.experiment, x, records))
        if layout.contrast:
            names = map(grid.label, (layout.contrast.baseline, layout.contrast.treated))
            axes_of_row[0].set_ylabel(f"Updates,\n{' / '.join(names)}")
    for axes, x in zip(grid.axes[-1], across, strict=True):
        x.fit(axes)


DRAWN = {"heat": _draw_heat, "scatter": _draw_scatters, "factors": _draw_factors}
"""What draws the forms that are not lines of means."""


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


def _count(axes: Axes, counts: Sequence[int]) -> None:
    low, high = min(counts, default=0), max(counts, default=0)
    text = f"n = {low}" if low == high else f"n = {low}–{high}"
    axes.set_title(text, loc="right", fontsize=7.5, color="#555555")


def _draw_chance(row: Sequence[Axes], across: Sequence[Scale]) -> None:
    """Draw what guessing would give, where the horizontal axis tells the vocabulary."""
    for axes, x in zip(row, across, strict=True):
        if x.column == "task.vocab_size":
            axes.plot(
                [x.position(value) for value in x.values],
                [1 / value for value in x.values],
                color="#777777",
                linewidth=0.9,
                linestyle=(0, (1, 1.5)),
                label=CHANCE,
                zorder=1,
            )


def _quantity(experiment: Experiment, metric: str | None) -> str:
    layout, label = experiment.figure, Labels(experiment.labels)
    if metric is not None:
        return textwrap.fill(label(metric), 24)
    contrast = layout.contrast
    sides = f"{label(contrast.treated)} − {label(contrast.baseline)}" if contrast else ""
    return f"{textwrap.fill(f'{label(layout.metrics[0])}:', 24)}\n{textwrap.fill(sides, 28)}"


def _frame(
    figure: Figure, experiment: Experiment, grid: Sequence[Axes], footer: Sequence[str]
) -> None:
    entries: dict[str, Any] = {}
    for axes in grid:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if CHANCE in entries:
        entries[CHANCE] = entries.pop(CHANCE)  # the measured lines come first
    width, height = figure.get_size_inches() * 72
    title = _balanced(shorten(experiment.question, LONGEST), int(width / 6.2))
    num_rows = math.ceil(sum(5.0 * len(name) + 48 for name in entries) / width)
    # The layout keeps room for the title only, so empty lines of it are the legend's.
    figure.suptitle("\n".join([*title, "", *[""] * num_rows]), fontsize=11, linespacing=1.2)
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="upper center",
            bbox_to_anchor=(0.5, 1 - (4 + 15.5 * len(title)) / height),
            ncols=max(1, math.ceil(len(entries) / num_rows)),
        )
    # Lines break between items only: textwrap lets no-break spaces be.
    items = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in footer]
    note = textwrap.wrap(SEPARATOR.join(items), int(width / 4.2))
    figure.supxlabel(
        "\n".join(line.strip(SEPARATOR) for line in note),
        fontsize=7,
        color="#555555",
        x=0.01,
        ha="left",
    )
    # Settled here once: a layout made anew for each file's resolution would differ by rounding.
    figure.draw_without_rendering()
    # Not "none": that leaves a placeholder, for which every file is drawn twice.
    figure.set_layout_engine(None)


def _balanced(text: str, width: int) -> list[str]:
    """Break a text into as few lines as fit, of about equal length."""
    fewest = len(textwrap.wrap(text, width))
    narrow = next((w for w in range(8, width) if len(textwrap.wrap(text, w)) <= fewest), width)
    return textwrap.wrap(text, narrow) or [""]


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


def _empty(experiment: Experiment, why: str) -> Figure:
    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    figure.suptitle("\n".join(_balanced(shorten(experiment.question, LONGEST), 70)), fontsize=11)
    figure.text(0.5, 0.45, why, ha="center", color="#555555")
    return figure


@contextmanager
def drawing() -> Iterator[None]:
    """Draw from matplotlib's own defaults and this style, whatever the user's settings are."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
