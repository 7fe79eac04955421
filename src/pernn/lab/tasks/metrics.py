"""Metrics: what is measured of predictions."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64, Shaped

from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions, Table
from pernn.lab.metrics import (
    ascending_pair_share,
    ascending_sequence_share,
    edit_distances,
    sequence_accuracy,
    token_accuracy,
)


@runtime_checkable
class Metric(Protocol):
    """A function of predictions and what was asked."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Return metrics and tables."""


@dataclass(frozen=True)
class Sequences:
    """Accuracies and the Damerau–Levenshtein distance, raw and over the sequence's length."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Measure whole sequences."""
        asked = found, targets = predictions.values, batch.targets
        distances = edit_distances(found, targets)
        lengths = (targets != UNSCORED).sum(axis=1)
        return Measurement(
            {
                "token_accuracy": token_accuracy(*asked),
                "sequence_accuracy": sequence_accuracy(*asked),
                "damerau_levenshtein": float(distances.mean()),
                "damerau_levenshtein_share": float((distances / lengths).mean()),
            }
        )


@dataclass(frozen=True)
class Ascending:
    """Shares of outputs in ascending order, right or wrong."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Return the shares of ascending pairs and of sequences that ascend throughout."""
        asked = predictions.values, batch.targets
        return Measurement(
            {
                "ascending_pair_share": ascending_pair_share(*asked),
                "ascending_sequence_share": ascending_sequence_share(*asked),
            }
        )


@dataclass(frozen=True, kw_only=True)
class SolvedOrStuck:
    """1 for a trial that ended perfect or at chance, else 0.

    Args:
        chance: Token accuracy of guessing.
        tolerance: How far from 1 or from chance still counts.
    """

    chance: float
    tolerance: float = 0.01

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Compare the token accuracy with 1 and with chance."""
        accuracy = token_accuracy(predictions.values, batch.targets)
        solved = float(accuracy >= 1 - self.tolerance)
        stuck = float(accuracy <= self.chance + self.tolerance)
        return Measurement({"solved": solved, "stuck": stuck, "solved_or_stuck": solved + stuck})


@dataclass(frozen=True)
class ByLength:
    """Token accuracy by the number of tokens that are to be answered."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Return a table of lengths."""
        values, targets = predictions.values, batch.targets
        lengths = (targets != UNSCORED).sum(axis=1)
        cells = group(np.arange(len(lengths)), lengths)
        table: Table = {
            "length": [length for (length,) in cells],
            "token_accuracy": [token_accuracy(values[one], targets[one]) for one in cells.values()],
            "num_sequences": [one.size for one in cells.values()],
        }
        return Measurement({}, {"by_length": table})


def group(
    values: Shaped[np.ndarray, " rows"], *keys: Int64[np.ndarray, " rows"]
) -> dict[tuple[int, ...], Shaped[np.ndarray, " _"]]:
    """Return the values of each combination of keys, in ascending order."""
    cells, number = np.unique(np.stack(keys), axis=1, return_inverse=True)
    return {tuple(cell): values[number == place] for place, cell in enumerate(cells.T.tolist())}


def measure_all(metrics: tuple[Metric, ...], predictions: Predictions, batch: Batch) -> Measurement:
    """Combine the measurements of several metrics."""
    found = [one.measure(predictions, batch) for one in metrics]
    return Measurement(
        {name: value for part in found for name, value in part.metrics.items()},
        {name: table for part in found for name, table in part.tables.items()},
    )
