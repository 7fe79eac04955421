"""The horizontal axis of a panel."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from pernn.errors import ConfigError
from pernn.experiments import Experiment

from .labels import Labels
from .statistics import Record, rank

DENSE = 16
"""More values than this, on a linear axis, have no ticks of their own."""


class Horizontal:
    """The horizontal axis of a panel: values → positions; words stand at 0, 1, 2, ….

    Args:
        experiment: Its layout says what is on the axis.
        records: Those of the panel.
    """

    def __init__(self, experiment: Experiment, records: Sequence[Record]) -> None:
        layout, self.label = experiment.figure, Labels(experiment.labels)
        self.column, self.base = layout.x, layout.x_base
        self.values = self.label.order(record.get(layout.x) for record in records)
        self.numeric = not any(rank(value)[0] for value in self.values)
        if self.base and not (self.numeric and all(value > 0 for value in self.values)):
            raise ConfigError(f"{self.column} needs positive numbers for a logarithmic axis")

    @property
    def is_dense(self) -> bool:
        """Whether there are too many numbers for a tick each, so that round ones serve better."""
        return self.numeric and not self.base and len(self.values) > DENSE

    def position(self, value: Any, shift: float = 0.0) -> float:
        """Place a value, moved by `shift` steps between neighbours."""
        if self.base:
            return float(value) * math.pow(self.base, shift)
        place = float(value) if self.numeric else float(self.values.index(value))
        return place + shift * self._step()

    def _step(self) -> float:
        if not self.numeric or len(self.values) < 2:
            return 1.0
        return float(self.values[-1] - self.values[0]) / (len(self.values) - 1)

    def fit(self, axes: Axes) -> None:
        """Scale the axis and put its ticks at the values, fewer if they would collide."""
        if not self.values:
            return
        if self.base:
            axes.set_xscale("log", base=self.base)
        edge = 0.6 if len(self.values) > 1 else 1.0
        axes.set_xlim(self.position(self.values[0], -edge), self.position(self.values[-1], edge))
        if self.is_dense:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 4, 5, 8, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
            return
        every = math.ceil(len(self.values) / 8)
        shown = self.values[::every]
        axes.xaxis.set_major_locator(FixedLocator([self.position(value) for value in shown]))
        axes.xaxis.set_minor_locator(FixedLocator([self.position(value) for value in self.values]))
        axes.xaxis.set_minor_formatter(NullFormatter())
        slanted = max(len(self.label(value)) for value in shown) * self._room(shown) > 28
        axes.set_xticklabels(
            [self.label(value) for value in shown],
            rotation=40 if slanted else 0,
            ha="right" if slanted else "center",
            rotation_mode="anchor",
        )

    def _room(self, shown: Sequence[Any]) -> float:
        """Count how many labels of equal width the closest two ask room for."""
        places = [self.position(value) for value in shown]
        if self.base:
            places = [math.log(place) for place in places]
        gaps = [right - left for left, right in pairwise(places)]
        return (places[-1] - places[0]) / min(gaps) + 1 if gaps else 1.0
