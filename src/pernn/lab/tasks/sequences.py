"""Parts of sequences: rules, sources of tokens, feedback and lengths."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, Int64, UInt64

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.randomness import integers, uniform

Inputs = Int64[np.ndarray, "batch input_time"] | Float32[np.ndarray, "batch input_time width"]
"""Rows of ids, as long as the longest; what is beyond a row's own length is filled up. Or vectors.
"""
Targets = Int64[np.ndarray, "batch scored"] | Float32[np.ndarray, "batch scored width"]
Tokens = Int64[np.ndarray, "batch token_time"] | Float32[np.ndarray, "batch token_time width"]
Words = UInt64[np.ndarray, "batch input_time"]
"""Random words, one per id."""


@runtime_checkable
class Rule(Protocol):
    """A deterministic function from inputs to targets, row by row."""

    def targets(self, inputs: Inputs) -> Targets:
        """Return the expected predictions."""


@dataclass(frozen=True)
class Reverse:
    """The inputs, last one first.

    Example:
        8 29 2 11 → 11 2 29 8

    Source: Morita (2024), section 2.1.
    """

    def targets(self, inputs: Inputs) -> Targets:
        """Reverse every row."""
        return np.ascontiguousarray(inputs[:, ::-1])


@dataclass(frozen=True)
class Sort:
    """The inputs in ascending order, repeated ids repeated.

    Example:
        8 29 2 8 → 2 8 8 29
    """

    def targets(self, inputs: Inputs) -> Targets:
        """Sort every row."""
        return np.sort(inputs, axis=1)


@dataclass(frozen=True)
class Same:
    """The inputs in their own order.

    Example:
        8 29 2 11 → 8 29 2 11
    """

    def targets(self, inputs: Inputs) -> Targets:
        """Copy every row."""
        return inputs.copy()


@dataclass(frozen=True, kw_only=True)
class DelayedAddition:
    """The reversed first half plus the second half, modulo K.

    Args:
        vocab_size: Number of token ids, K.

    Example:
        8 29 2, then 5 4 30 → 7 1 6 (K = 32)
    """

    vocab_size: int

    def targets(self, inputs: Inputs) -> Targets:
        """Add the halves of every row."""
        half = inputs.shape[1] // 2
        sums: Targets = inputs[:, half - 1 :: -1] + inputs[:, half:]
        return sums % self.vocab_size


@dataclass(frozen=True)
class Predecessor:
    """The id before the first occurrence of the last one.

    Example:
        8 29 2 11, then 2 → 29
    """

    def targets(self, inputs: Inputs) -> Targets:
        """Look up every row's last id.

        Raises:
            ConfigError: If it does not occur before, or stands first.
        """
        places = (inputs[:, :-1] == inputs[:, -1:]).argmax(axis=1)
        if not places.all():
            raise ConfigError(
                "a predecessor query must repeat one of the ids before it, not the first: "
                "use the source Cued"
            )
        return np.take_along_axis(inputs, places[:, None] - 1, axis=1)


@runtime_checkable
class Source(Protocol):
    """A pure function from random words to input ids, row by row."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""

    def draw(self, words: Words) -> Inputs:
        """Return a sequence for each row of words."""

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length that can occur."""


@dataclass(frozen=True, kw_only=True)
class _Ids:
    vocab_size: int

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length."""
        return int(self.vocab_size**length)


@dataclass(frozen=True, kw_only=True)
class Uniform(_Ids):
    """Ids drawn uniformly and independently from 0 … vocab_size − 1."""

    def draw(self, words: Words) -> Inputs:
        """Map one random word to each id."""
        return integers(words, self.vocab_size)


@dataclass(frozen=True, kw_only=True)
class DualFrequency(_Ids):
    """Independent ids, Rare with a probability, uniform within their half.

    Frequent are the ids of the first half, Rare those of the second. One random word decides both:
    the part of [0, 1) below 1 − rare_share is divided evenly among the Frequent ids, the rest among
    the Rare ones. No id's probability is off by more than 2⁻⁵².

    Args:
        vocab_size: Number of token ids, K, an even number.
        rare_share: Probability that an id is Rare, in (0, 1).

    Source: Morita (2024), section 2.2.
    """

    rare_share: float

    def draw(self, words: Words) -> Inputs:
        """Map one random word to each id."""
        half, frequent_share = self.vocab_size // 2, 1 - self.rare_share
        point = uniform(words)
        is_rare = point >= frequent_share
        beyond = np.maximum(point - frequent_share, 0) / self.rare_share
        inside = np.where(is_rare, beyond, point / frequent_share)
        # A quotient may be rounded up to 1.
        ranks = np.minimum((inside * half).astype(np.int64), half - 1)
        ids: Inputs = ranks + half * is_rare
        return ids


@dataclass(frozen=True, kw_only=True)
class NonRepeating(_Ids):
    """Distinct ids, every ordered choice of them equally likely.

    Step t = 0, 1, … picks one of the vocab_size − t ids that are still free, by its rank among
    them. The L ranks and the L ids determine each other, so the K!/(K − L)! sequences are exactly
    as likely as the K!/(K − L)! combinations of ranks: uniform wherever `integers` is. Nothing of
    the size of the vocabulary is held in memory.
    """

    def draw(self, words: Words) -> Inputs:
        """Map one random word to each id, without repetition."""
        ids = np.empty(words.shape, dtype=np.int64)
        for step in range(words.shape[1]):
            rank = integers(words[:, step], self.vocab_size - step)
            # Below the n-th smallest used id v_n lie v_n − n free ones, n counted from 0: all used
            # ids for which these do not suffice are to be skipped.
            free_below = np.sort(ids[:, :step], axis=1) - np.arange(step)
            ids[:, step] = rank + (free_below <= rank[:, None]).sum(axis=1)
        return ids

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length.

        Raises:
            ConfigError: If there is no such sequence.
        """
        if self.vocab_size < length:
            raise ConfigError(
                f"vocab_size must be at least the length: there are no {length} distinct ids "
                f"among {self.vocab_size}"
            )
        return math.perm(self.vocab_size, length)


@dataclass(frozen=True, kw_only=True)
class Cued:
    """Distinct ids, then one of them again, never the first.

    Args:
        source: Where the distinct ids come from.
    """

    source: NonRepeating

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""
        return self.source.vocab_size

    def draw(self, words: Words) -> Inputs:
        """Map each row's last word to a place, others to ids."""
        ids = self.source.draw(words[:, :-1])
        places = 1 + integers(words[:, -1:], ids.shape[1] - 1)
        return np.concatenate([ids, np.take_along_axis(ids, places, axis=1)], axis=1)

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length, the repeated id included."""
        return self.source.num_sequences(length - 1) * (length - 2)


@runtime_checkable
class Feedback(Protocol):
    """Tokens and queries around the inputs, and their embedding rows.

    By default there are none.
    """

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Names of the embedding rows after the ids', the query's first."""
        return ()

    def num_queries(self, num_targets: int) -> int:
        """Count the query steps for that many targets."""
        return 0

    def tokens(self, inputs: Inputs, targets: Targets, vocab_size: int) -> Tokens:
        """Return all tokens that are shown before the queries."""
        return inputs


@dataclass(frozen=True)
class Query(Feedback):
    """The same learnable vector at every step of the output phase.

    Source: Morita (2024), section 4.1.
    """

    extra_rows = ("?",)

    def num_queries(self, num_targets: int) -> int:
        """Count the query steps for that many targets: one each."""
        return num_targets


@dataclass(frozen=True)
class Unprompted(Feedback):
    """No query: the answers are due while the last inputs are shown."""


@dataclass(frozen=True, kw_only=True)
class HoldAndEmit(Feedback):
    """A learnable vector while inputs are held, another for the outputs.

    EMIT is the query, the embedding's row `vocab_size`; HOLD is the token `vocab_size + 1`.

    Args:
        hold_time: Steps between the inputs and the answers; without any there is no HOLD row.
    """

    hold_time: int

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name the rows that are shown."""
        return ("EMIT", "HOLD") if self.hold_time else ("EMIT",)

    def num_queries(self, num_targets: int) -> int:
        """Count the EMIT steps for that many targets: one each."""
        return num_targets

    def tokens(self, inputs: Inputs, targets: Targets, vocab_size: int) -> Tokens:
        """Show the inputs, then HOLD."""
        holds = np.full((len(inputs), self.hold_time), vocab_size + 1, dtype=np.int64)
        return np.concatenate([inputs, holds], axis=1)


@dataclass(frozen=True)
class OwnOutput(Feedback):
    """The previous output, in training the true one (teacher forcing).

    The sign is DUMMY, the embedding's row `vocab_size`. The task shows the true outputs; a network
    with a `decode` of its own puts its outputs in their place.

    Source: Morita (2024), version 1, appendix B.2.
    """

    extra_rows = ("DUMMY",)

    def tokens(self, inputs: Inputs, targets: Targets, vocab_size: int) -> Tokens:
        """Show the inputs, DUMMY, and all targets but the last one."""
        dummy = np.full((len(inputs), 1), vocab_size, dtype=np.int64)
        return np.concatenate([inputs, dummy, targets[:, :-1]], axis=1)


@runtime_checkable
class Length(Protocol):
    """The lengths that inputs may have, and how likely each is.

    By default all inputs have the one that is possible.
    """

    @property
    def possible(self) -> range:
        """All lengths, the shortest first."""

    @property
    def tested(self) -> tuple[int, ...]:
        """Lengths of test sequences, the shortest first: `possible`, and maybe longer."""
        return tuple(self.possible)

    @property
    def num_draws(self) -> int:
        """Random words that decide a row's length, beside those of its ids."""
        return 0

    def cut(self, ids: Inputs, words: UInt64[np.ndarray, "batch words"], padding: int) -> Inputs:
        """Set the length of every row: ids beyond it become padding."""
        return ids

    def join(self, inputs: Inputs, padding: int, make: Callable[[Inputs], Batch]) -> Batch:
        """Make a batch out of batches of one length each."""
        return make(inputs)


@dataclass(frozen=True, kw_only=True)
class Fixed(Length):
    """Every input has the same length."""

    length: int

    @property
    def possible(self) -> range:
        """The one length."""
        return range(self.length, self.length + 1)


@dataclass(frozen=True, kw_only=True)
class UniformRange(Length):
    """A length per input, uniform in min_length … longest.

    In a batch each sequence starts at step 1: inputs, then as many queries, then padding up to the
    steps of the longest. Queries are given as tokens, since they begin at different steps; padding
    shows the query too, is never scored and comes last, so it changes nothing that is. Needed are
    the feedback `Query`, a rule with one answer for each input, and a source other than `Cued`.

    Args:
        min_length: Shortest length.
        longest: Longest length of training.
        beyond: Further lengths of test sequences, ascending.

    Raises:
        ConfigError: If the lengths are not positive, none lies between them, or those beyond do
            not ascend.
    """

    min_length: int
    longest: int
    beyond: tuple[int, ...] = ()
    num_draws: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 1 <= self.min_length <= self.longest:
            raise ConfigError(
                f"min_length must lie in 1 … {self.longest}, the longest length; "
                f"got {self.min_length}"
            )
        if any(one >= other for one, other in pairwise((self.longest, *self.beyond))):
            raise ConfigError(
                f"tested lengths must ascend from above {self.longest}, the longest of training; "
                f"got {', '.join(map(str, self.beyond))}"
            )

    @property
    def possible(self) -> range:
        """All lengths of training."""
        return range(self.min_length, self.longest + 1)

    @property
    def tested(self) -> tuple[int, ...]:
        """Those of training, and those beyond."""
        return (*self.possible, *self.beyond)

    def cut(self, ids: Inputs, words: UInt64[np.ndarray, "batch words"], padding: int) -> Inputs:
        """Draw a length for every row, and pad beyond it."""
        lengths = self.min_length + integers(words, len(self.possible))
        return np.where(np.arange(ids.shape[1]) < lengths, ids, padding)

    def join(self, inputs: Inputs, padding: int, make: Callable[[Inputs], Batch]) -> Batch:
        """Join batches of one length each, row by row."""
        count, longest = inputs.shape
        tokens = np.full((count, 2 * longest), padding, dtype=np.int64)
        targets = np.full((count, 2 * longest - self.min_length), UNSCORED, dtype=np.int64)
        lengths = (inputs != padding).sum(axis=1)
        for length in np.unique(lengths):
            rows = lengths == length
            alone = make(inputs[rows, :length])
            tokens[rows, :length] = alone.tokens
            due = slice(length - self.min_length, 2 * length - self.min_length)
            targets[rows, due] = alone.targets
        return Batch(tokens, 0, targets)
