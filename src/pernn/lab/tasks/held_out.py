"""Test sequences: how they are made and scored."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError
from pernn.randomness import RandomStream

from .lengths import Length
from .rules import Rule
from .sources import Source

Inputs = Int64[np.ndarray, "held_out input_time"]
Targets = Int64[np.ndarray, "held_out scored"]


@runtime_checkable
class Composed(Protocol):
    """The part of a task on which test sequences may depend."""

    @property
    def rule(self) -> Rule:
        """Inputs → targets."""
        ...

    @property
    def source(self) -> Source:
        """Random words → inputs."""
        ...

    @property
    def length(self) -> Length:
        """Length of the inputs."""
        ...

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""
        ...

    @property
    def longest(self) -> int:
        """Length of the longest inputs."""
        ...


@runtime_checkable
class HeldOut(Protocol):
    """A way to make test sequences, which training never shows."""

    def check(self, task: Composed) -> None:
        """Refuse a task with too few sequences to test and train."""
        ...

    def inputs(self, task: Composed, stream: RandomStream) -> Inputs:
        """Draw distinct sequences from the test stream."""
        ...

    def mark(self, targets: Targets) -> Targets:
        """Make `UNSCORED` what is not asked of the same sequences."""
        ...


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
        for length in task.length.possible:
            possible = task.source.num_sequences(length)
            if self.num_held_out >= possible:
                raise ConfigError(
                    f"num_held_out must lie in 1 … {possible - 1:,}: only {possible:,} sequences "
                    f"of {length} tokens exist and one must be left to train on; "
                    f"got {self.num_held_out:,}"
                )

    def inputs(self, task: Composed, stream: RandomStream) -> Inputs:
        """Take the first distinct sequences of each length, the shortest first."""
        longest = task.length.possible[-1]
        blocks = []
        for place, length in enumerate(task.length.possible):
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
