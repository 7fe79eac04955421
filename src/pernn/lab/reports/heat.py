"""Heat maps: a metric's mean over seeds as the colour of cells, one scale for all panels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from pernn.lab.experiments import FigureLayout

from .records import Record
from .scales import Scale
from .series import numbers, place_records

RISING, DIVERGING = "viridis", "RdBu"
"""Colour maps: from little to much, and from negative to positive with white at 0."""

TRIFLE = 0.1
"""Share of the larger side up to which the smaller side of 0 has no colours of its own."""


Colours = tuple[Normalize, str]
"""What colour a number has: the numbers that have one, and the colour map."""


@dataclass(frozen=True)
class Cells:
    """The cells of one panel.

    Attributes:
        means: By row of the vertical axis and column of the horizontal one; NaN if there is none.
        counts: How many seeds each mean is over, of the cells that have one.
    """

    means: Float64[np.ndarray, "rows columns"]
    counts: tuple[int, ...]


def collect_cells(
    layout: FigureLayout, x: Scale, y: Scale, records: Sequence[Record], metric: str
) -> Cells:
    """Average a metric over the seeds of each cell of a panel.

    Raises:
        ConfigError: If two records compete for one place.
    """
    places = place_records(layout, records, y.values)
    found: Mapping[Any, Any] = {row: numbers(at, metric) for row, at in places.items()}
    means = np.full((len(y.values), len(x.values)), np.nan)
    counts = []
    for row, value in enumerate(y.values):
        for column, at in enumerate(x.values):
            if seeds := found[value].get(at):
                means[row, column] = np.mean(list(seeds.values()))
                counts.append(len(seeds))
    return Cells(means, tuple(counts))


def colours(panels: Sequence[Cells]) -> Colours:
    """Choose the colours of a figure.

    They go from the smallest to the largest mean that is drawn. Where means lie on both sides of 0,
    none of them a trifle beside the other, the colours diverge from 0, equally far on both sides.
    """
    drawn = np.concatenate([cells.means.ravel() for cells in panels])
    drawn = drawn[~np.isnan(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
    if min(-low, high) > TRIFLE * max(-low, high):
        reach = max(-low, high)
        return Normalize(-reach, reach), DIVERGING
    # One value alone has some colour, too.
    return Normalize(low, high if high > low else low + 1.0), RISING


def draw_cells(axes: Axes, x: Scale, y: Scale, cells: Cells, colour: Colours) -> None:
    """Draw the cells of a panel; those without a value are hatched."""
    axes.grid(visible=False)
    axes.patch.set(facecolor="#ffffff", edgecolor="#c4c4c4", hatch="//////", linewidth=0)
    if not np.isnan(cells.means).all():
        axes.pcolormesh(
            x.edges(),
            y.edges(),
            np.ma.masked_invalid(cells.means),
            norm=colour[0],
            cmap=colour[1],
            linewidth=0,
        )
    axes.tick_params(which="minor", length=0)


def add_colour_bar(figure: Figure, grid: Sequence[Axes], colour: Colours, name: str) -> None:
    """Put the colour bar to the right of all panels."""
    height = figure.get_size_inches()[1]
    bar = figure.colorbar(
        ScalarMappable(*colour),
        ax=list(grid),
        label=name,
        pad=0.015,
        aspect=min(10 * height, 40),
    )
    # Not as a picture, which a page that loads nothing would not show.
    if bar.solids is not None:
        bar.solids.set_rasterized(False)
        bar.solids.set_edgecolor("face")
    bar.outline.set_linewidth(0.6)
