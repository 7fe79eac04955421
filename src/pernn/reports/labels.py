"""How columns and values are called, in which order they stand, and how the trials were run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pernn.experiments import Experiment

from .statistics import NUM_RESAMPLES, Record, rank
from .tables import clean

SETTINGS = (
    ("protocol", "protocol {}"),
    ("training.precision", "precision {}"),
    ("task.length", "L = {}"),
    ("core.hidden_size", "hidden size {}"),
    ("training.iterations", "{} iterations"),
)
"""Columns of the footer."""

SEPARATOR = " · "


class Labels:
    """Display names of columns and values, and the order in which they are shown.

    Args:
        names: Column or value → display name; listed values come first, in the list's order.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.places = {name: place for place, name in enumerate(names)}

    def __call__(self, value: Any) -> str:
        """Give a display name; numbers have thousands separated."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return clean(self.names.get(str(value), str(value)))
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"

    def order(self, values: Iterable[Any]) -> list[Any]:
        """Give the distinct values: those with a name first, then by size or alphabet."""
        last = len(self.places)
        return sorted(set(values), key=lambda value: (self.places.get(value, last), rank(value)))


def footer(experiment: Experiment, records: Sequence[Record]) -> str:
    """Say in one line how the trials were run and what the error bars are."""
    return SEPARATOR.join(footer_items(experiment, records))


def footer_items(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """Give the parts of the footer."""
    label = Labels(experiment.labels)
    words = []
    for column, text in SETTINGS:
        values = sorted({record[column] for record in records if column in record}, key=rank)
        if values and column != experiment.figure.x:
            words.append(text.format(", ".join(label(value) for value in values)))
    seeds = len({record["seed"] for record in records})
    words.append(f"n = {seeds} seed{'s' * (seeds != 1)}")
    words.append(f"error bars: 95 % bootstrap, {NUM_RESAMPLES:,} resamples over seeds")
    return words
