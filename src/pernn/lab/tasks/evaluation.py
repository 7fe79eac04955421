"""Test sequences and metrics: how they are made, scored and measured."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions
from pernn.lab.metrics import (
    ascending_pair_share,
    ascending_sequence_share,
    edit_distances,
    sequence_accuracy,
    token_accuracy,
)
from pernn.randomness import RandomStream

from .sequences import Length, Rule, Source

Inputs = Int64[np.ndarray, "held_out input_time"]
Targets = Int64[np.ndarray, "held_out scored"]


@runtime_checkable
class Composed(Protocol):
    """The part of a task on which test sequences may depend."""

    @property
    def rule(self) -> Rule:
        """Inputs → targets."""

    @property
    def source(self) -> Source:
        """Random words → inputs."""

    @property
    def length(self) -> Length:
        """Length of the inputs."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""

    @property
    def longest(self) -> int:
        """Length of the longest inputs."""


@runtime_checkable
class HeldOut(Protocol):
    """A way to make test sequences, which training never shows."""

    def check(self, task: Composed) -> None:
        """Refuse a task with too few sequences to test and train."""

    def inputs(self, task: Composed, stream: RandomStream) -> Inputs:
        """Draw distinct sequences from the test stream."""

    def mark(self, targets: Targets) -> Targets:
        """Make `UNSCORED` what is not asked of the same sequences."""


@dataclass(frozen=True, kw_only=True)
class Distinct:
    """Distinct samples like those of training, fully scored.

    Args:
        num_held_out: How many there are of each length.

    Raises:
        ConfigError: If num_held_out < 1.
    """

    num_held_out: int = 1024

    def __post_init__(self) -> None:
        if self.num_held_out < 1:
            raise ConfigError(f"num_held_out must be at least 1, got {self.num_held_out}")

    def check(self, task: Composed) -> None:
        """Refuse to hold out all sequences of a length.

        Raises:
            ConfigError: If there are not that many distinct ones and one to train on.
        """
        for length in task.length.tested:
            possible = task.source.num_sequences(length)
            if self.num_held_out >= possible:
                raise ConfigError(
                    f"num_held_out must lie in 1 … {possible - 1:,}: only {possible:,} sequences "
                    f"of {length} tokens exist and one must be left to train on; "
                    f"got {self.num_held_out:,}"
                )

    def inputs(self, task: Composed, stream: RandomStream) -> Inputs:
        """Take the first distinct sequences of each length, the shortest first."""
        *_, longest = task.length.tested
        blocks = []
        for place, length in enumerate(task.length.tested):
            rows = np.empty((0, length), dtype=np.int64)
            lane = 0
            while len(rows) < self.num_held_out:
                words = stream.words(place, self.num_held_out * length, lane)
                rows = np.concatenate([rows, task.source.draw(words.reshape(-1, length))])
                _, first = np.unique(rows, axis=0, return_index=True)
                rows = rows[np.sort(first)]
                lane += 1
            beyond = ((0, 0), (0, longest - length))
            blocks.append(
                np.pad(rows[: self.num_held_out], beyond, constant_values=task.vocab_size)
            )
        return np.concatenate(blocks)

    def mark(self, targets: Targets) -> Targets:
        """Ask for everything."""
        return targets


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
        tolerance: How far from 1 or from chance still counts, in [0, 1].

    Raises:
        ConfigError: If the two ranges overlap.
    """

    chance: float
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < (1 - self.chance) / 2:
            raise ConfigError(
                f"tolerance must lie in 0 … {(1 - self.chance) / 2:g}, got {self.tolerance}"
            )

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
        lengths = (batch.targets != UNSCORED).sum(axis=1)
        found = np.unique(lengths)
        accuracies = [
            token_accuracy(predictions.values[lengths == length], batch.targets[lengths == length])
            for length in found
        ]
        counts = [int((lengths == length).sum()) for length in found]
        table = {
            "length": found.tolist(),
            "token_accuracy": accuracies,
            "num_sequences": counts,
        }
        return Measurement({}, {"by_length": table})


def measure_all(metrics: tuple[Metric, ...], predictions: Predictions, batch: Batch) -> Measurement:
    """Combine the measurements of several metrics."""
    found = [one.measure(predictions, batch) for one in metrics]
    return Measurement(
        {name: value for part in found for name, value in part.metrics.items()},
        {name: table for part in found for name, table in part.tables.items()},
    )
