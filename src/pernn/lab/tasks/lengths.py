"""Lengths of inputs, and batches of several lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64, UInt64

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.randomness import integers

from .feedback import Feedback, Query
from .rules import Rule
from .sources import Cued, Source

Inputs = Int64[np.ndarray, "batch input_time"]
"""Rows of ids, as long as the longest; what is beyond a row's own length is filled up."""


@runtime_checkable
class Length(Protocol):
    """The lengths that inputs may have, and how likely each is."""

    @property
    def possible(self) -> range:
        """All lengths, the shortest first."""
        ...

    @property
    def num_draws(self) -> int:
        """Random words that decide a row's length, beside those of its ids."""
        ...

    def check(self, rule: Rule, source: Source, feedback: Feedback) -> None:
        """Refuse parts that do not work with these lengths."""
        ...

    def cut(self, ids: Inputs, words: UInt64[np.ndarray, "batch words"], padding: int) -> Inputs:
        """Set the length of every row: ids beyond it become padding."""
        ...

    def join(self, inputs: Inputs, padding: int, make: Callable[[Inputs], Batch]) -> Batch:
        """Make a batch out of batches of one length each."""
        ...


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Every input has the same length.

    Raises:
        ConfigError: If the length is not positive.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigError(f"length must be at least 1, got {self.length}")

    @property
    def possible(self) -> range:
        """The one length."""
        return range(self.length, self.length + 1)

    @property
    def num_draws(self) -> int:
        """None: nothing is to be decided."""
        return 0

    def check(self, rule: Rule, source: Source, feedback: Feedback) -> None:
        """Take any parts."""

    def cut(self, ids: Inputs, words: UInt64[np.ndarray, "batch words"], padding: int) -> Inputs:
        """Leave the rows as they are."""
        return ids

    def join(self, inputs: Inputs, padding: int, make: Callable[[Inputs], Batch]) -> Batch:
        """Make the batch at once."""
        return make(inputs)


@dataclass(frozen=True, kw_only=True)
class UniformRange:
    """A length per input, uniform in min_length … longest.

    In a batch each sequence starts at step 1: inputs, then as many queries, then padding up to the
    steps of the longest. Queries are given as tokens, since they begin at different steps; padding
    shows the query too, is never scored and comes last, so it changes nothing that is.

    Raises:
        ConfigError: If the lengths are not positive or none lies between them.
    """

    min_length: int
    longest: int

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.longest:
            raise ConfigError(
                f"min_length must lie in 1 … {self.longest}, the longest length; "
                f"got {self.min_length}"
            )

    @property
    def possible(self) -> range:
        """All lengths."""
        return range(self.min_length, self.longest + 1)

    @property
    def num_draws(self) -> int:
        """One word for the length."""
        return 1

    def check(self, rule: Rule, source: Source, feedback: Feedback) -> None:
        """Refuse what does not keep its meaning when a sequence is shorter.

        Raises:
            ConfigError: If there is no query row to fill up with, the source's last id is special,
                or the rule does not give one answer for each input.
        """
        if not isinstance(feedback, Query):
            raise ConfigError(
                "inputs of several lengths need the feedback Query: its row stands at steps that "
                f"differ by sequence, and fills up the shorter ones; got {type(feedback).__name__}"
            )
        if isinstance(source, Cued):
            raise ConfigError(
                "inputs of several lengths cannot come from Cued: a shorter sequence would lose "
                "the repeated id at its end"
            )
        try:
            num_answers = rule.targets(np.zeros((1, 2), dtype=np.int64)).shape[1]
        except ConfigError:
            num_answers = None
        if num_answers != 2:
            raise ConfigError(
                "inputs of several lengths need a rule with one answer for each input, whatever "
                f"their number; {type(rule).__name__} has not"
            )

    def cut(self, ids: Inputs, words: UInt64[np.ndarray, "batch words"], padding: int) -> Inputs:
        """Draw a length for every row, and pad beyond it."""
        lengths = self.min_length + integers(words, len(self.possible))
        return np.where(np.arange(ids.shape[1]) < lengths, ids, padding)

    def join(self, inputs: Inputs, padding: int, make: Callable[[Inputs], Batch]) -> Batch:
        """Join batches of one length each, row by row."""
        tokens = np.full((len(inputs), 2 * self.longest), padding, dtype=np.int64)
        targets = np.full(
            (len(inputs), 2 * self.longest - self.min_length), UNSCORED, dtype=np.int64
        )
        lengths = (inputs != padding).sum(axis=1)
        for length in np.unique(lengths):
            rows = lengths == length
            alone = make(inputs[rows, :length])
            tokens[rows, :length] = alone.tokens
            due = slice(length - self.min_length, 2 * length - self.min_length)
            targets[rows, due] = alone.targets
        return Batch(tokens, 0, targets)
