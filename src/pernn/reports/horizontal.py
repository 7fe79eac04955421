"""The horizontal axis of a panel."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter

from pernn.errors import ConfigError
from pernn.experiments import Experiment

from .labels import Labels
from .statistics import Record, rank


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
        every = math.ceil(len(self.values) / 8)
        shown = self.values[::every]
        axes.xaxis.set_major_locator(FixedLocator([self.position(value) for value in shown]))
        axes.xaxis.set_minor_locator(FixedLocator([self.position(value) for value in self.values]))
        axes.xaxis.set_minor_formatter(NullFormatter())
        slanted = max(len(self.label(value)) for value in shown) * len(shown) > 28
        axes.set_xticklabels(
            [self.label(value) for value in shown],
            rotation=40 if slanted else 0,
            ha="right" if slanted else "center",
            rotation_mode="anchor",
        )
        edge = 0.6 if len(self.values) > 1 else 1.0
        axes.set_xlim(self.position(self.values[0], -edge), self.position(self.values[-1], edge))
