"""Sources of tokens: random words → ids, one word each."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64, UInt64

from pernn.errors import ConfigError
from pernn.randomness import integers, uniform


@runtime_checkable
class Source(Protocol):
    """A pure function from random words to input ids, row by row."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""
        ...

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
        """Return a sequence for each row of words."""
        ...

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length that can occur."""
        ...


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Ids drawn uniformly and independently from 0 … vocab_size − 1.

    Raises:
        ConfigError: If there are fewer than two ids.
    """

    vocab_size: int

    def __post_init__(self) -> None:
        _require_two_ids(self.vocab_size)

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
        """Map one random word to each id."""
        return integers(words, self.vocab_size)

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length."""
        count: int = self.vocab_size**length
        return count


@dataclass(frozen=True, kw_only=True)
class DualFrequency:
    """Independent ids, Rare with a probability, uniform within their half.

    Frequent are the ids of the first half, Rare those of the second. One random word decides both:
    the part of [0, 1) below 1 − rare_share is divided evenly among the Frequent ids, the rest among
    the Rare ones. No id's probability is off by more than 2⁻⁵².

    Args:
        vocab_size: Number of token ids, K, an even number.
        rare_share: Probability that an id is Rare, in (0, 1).

    Raises:
        ConfigError: If the ids cannot be halved, or one half would never occur.

    Source: Morita (2024), section 2.2.
    """

    vocab_size: int
    rare_share: float

    def __post_init__(self) -> None:
        _require_two_ids(self.vocab_size)
        if self.vocab_size % 2:
            raise ConfigError(
                "vocab_size must be even, as one half of the ids is Frequent and the other Rare; "
                f"got {self.vocab_size}"
            )
        if not 0 < self.rare_share < 1:
            raise ConfigError(f"rare_share must lie between 0 and 1, got {self.rare_share}")

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
        """Map one random word to each id."""
        half, frequent_share = self.vocab_size // 2, 1 - self.rare_share
        point = uniform(words)
        is_rare = point >= frequent_share
        beyond = np.maximum(point - frequent_share, 0) / self.rare_share
        inside = np.where(is_rare, beyond, point / frequent_share)
        # A quotient may be rounded up to 1.
        ranks = np.minimum((inside * half).astype(np.int64), half - 1)
        ids: Int64[np.ndarray, "batch input_time"] = ranks + half * is_rare
        return ids

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length."""
        count: int = self.vocab_size**length
        return count


@dataclass(frozen=True, kw_only=True)
class NonRepeating:
    """Distinct ids, every ordered choice of them equally likely.

    Step t = 0, 1, … picks one of the vocab_size − t ids that are still free, by its rank among
    them. The L ranks and the L ids determine each other, so the K!/(K − L)! sequences are exactly
    as likely as the K!/(K − L)! combinations of ranks: uniform wherever `integers` is. Nothing of
    the size of the vocabulary is held in memory.

    Raises:
        ConfigError: If there are fewer than two ids.
    """

    vocab_size: int

    def __post_init__(self) -> None:
        _require_two_ids(self.vocab_size)

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
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

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
        """Map each row's last word to a place, others to ids."""
        ids = self.source.draw(words[:, :-1])
        places = 1 + integers(words[:, -1:], ids.shape[1] - 1)
        return np.concatenate([ids, np.take_along_axis(ids, places, axis=1)], axis=1)

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length, the repeated id included.

        Raises:
            ConfigError: If there is no such sequence.
        """
        if length < 3:
            raise ConfigError(
                f"length must be at least 2 distinct ids and the repeated one, got {length} in all"
            )
        return self.source.num_sequences(length - 1) * (length - 2)


def _require_two_ids(vocab_size: int) -> None:
    if vocab_size < 2:
        raise ConfigError(f"vocab_size must be at least 2, got {vocab_size}")
