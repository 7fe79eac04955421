"""Where tokens come from: random words → ids."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64, UInt64

from pernn.errors import ConfigError
from pernn.randomness import integers


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Ids drawn uniformly and independently from 0 … vocab_size − 1.

    Raises:
        ConfigError: If there are fewer than two ids.
    """

    vocab_size: int

    def __post_init__(self) -> None:
        if self.vocab_size < 2:
            raise ConfigError(f"vocab_size must be at least 2, got {self.vocab_size}")

    def draw(
        self, words: UInt64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch input_time"]:
        """Map one random word to each id."""
        return integers(words, self.vocab_size)

    def num_sequences(self, length: int) -> int:
        """Count the distinct sequences of a length."""
        count: int = self.vocab_size**length
        return count
