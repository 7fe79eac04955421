"""Metrics: functions of predictions and targets, and what tasks measure by them."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int64, Shaped
from rapidfuzz.distance import DamerauLevenshtein

from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions, Table

Vectors = Float32[np.ndarray, "batch time width"]
Cosines = Float64[np.ndarray, "batch time"]
Ids = Int[np.ndarray, "batch scored"]
BoolArray = Bool[np.ndarray, "..."]


def cosine_similarities(predictions: Vectors, targets: Vectors) -> Cosines:
    """Compare vectors by their angle.

    A prediction of length 0 is similar to none; targets are not 0.
    """
    products = (predictions * targets).sum(axis=2, dtype=np.float64)
    lengths = [
        np.sqrt((part * part).sum(axis=2, dtype=np.float64)) for part in (predictions, targets)
    ]
    found = products / np.maximum(lengths[0] * lengths[1], np.finfo(np.float64).tiny)
    cosines: Cosines = np.clip(found, -1, 1)
    return cosines


def token_accuracy(predictions: Ids, targets: Ids) -> float:
    """Share of scored tokens that are right, in [0, 1]."""
    scored = targets != UNSCORED
    return float((predictions == targets)[scored].mean())


def sequence_accuracy(predictions: Ids, targets: Ids) -> float:
    """Return the share of sequences without an error, in [0, 1]."""
    scored = targets != UNSCORED
    return float(((predictions == targets) | ~scored).all(axis=1).mean())


def ascending_pair_share(predictions: Ids, targets: Ids) -> float:
    """Return the share of ascending neighbouring predictions, in [0, 1].

    Right or wrong; equal neighbours are in order, as tokens that are sorted may occur more than
    once. 1 if there is no pair.

    Source: the published program's script behind version 1, appendix C.2.
    """
    rows = _rows(predictions, targets != UNSCORED)
    steps = np.concatenate([np.diff(row) for row in rows])
    return float((steps >= 0).mean()) if steps.size else 1.0


def ascending_sequence_share(predictions: Ids, targets: Ids) -> float:
    """Return the share of predicted sequences that ascend throughout, in [0, 1].

    Right or wrong; equal neighbours are in order. One swapped pair spoils a whole sequence, so this
    is below `ascending_pair_share` wherever that is below 1.
    """
    rows = _rows(predictions, targets != UNSCORED)
    return float(np.mean([row == sorted(row) for row in rows]))


def edit_distances(predictions: Ids, targets: Ids) -> Int64[np.ndarray, " batch"]:
    """Count each sequence's insertions, deletions, substitutions and transpositions.

    The unrestricted variant: a substring may be edited more than once. At most the number of
    scored tokens.

    Source: Damerau (1964); computed by RapidFuzz, which needs plain lists.
    """
    scored = targets != UNSCORED
    pairs = zip(_rows(predictions, scored), _rows(targets, scored), strict=True)
    return np.array([DamerauLevenshtein.distance(left, right) for left, right in pairs])


def _rows(ids: Ids, scored: BoolArray) -> list[list[int]]:
    if scored.all():
        return ids.tolist()  # type: ignore[no-any-return]
    return [row[mask].tolist() for row, mask in zip(ids, scored, strict=True)]


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


@dataclass(frozen=True)
class ByIds:
    """The metrics of `Sequences`, for new ids and mixed sequences."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Measure the two halves."""
        half, found = len(batch.targets) // 2, []
        for rows in (slice(half), slice(half, None)):
            answers = Predictions(predictions.values[rows], predictions.losses[rows])
            asked = Batch(batch.tokens[rows], batch.num_queries, batch.targets[rows])
            found.append(Sequences().measure(answers, asked).metrics)
        new, mixed = found
        columns = {name: [value, mixed[name]] for name, value in new.items()}
        return Measurement(new, {"by_ids": {"ids": ["new", "mixed"], **columns}})


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
