"""Counter-based random streams, the same on every machine.

A stream is Philox-4×64-10 with the key (seed, digest of the name) and the 256-bit counter
(block, lane, step, split). Distinct seeds have distinct keys, and distinct lanes, steps and splits
have disjoint counters of 2⁶⁴ blocks each, so no two of them ever share a block. Only raw words are
taken from NumPy, whose bit generators are stable across versions, unlike its distributions.

Source: Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3".
"""

import hashlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from jaxtyping import Float64, Int64, UInt64

from pernn.errors import ConfigError

MAX_SEED = 2**63 - 1


class Split(IntEnum):
    """Use of the numbers: the highest word of the counter."""

    TRAIN = 0
    TEST = 1
    WEIGHTS = 2
    ANALYSIS = 3


@dataclass(frozen=True)
class RandomStream:
    """Random words that depend on nothing but their address.

    Args:
        seed: The trial's seed, 0 … 2⁶³ − 1.
        name: What the stream belongs to, for example the task's canonical description.
        split: What it is for.

    Raises:
        ConfigError: If the seed is out of range.
    """

    seed: int
    name: str
    split: Split

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= MAX_SEED:
            raise ConfigError(f"a seed must lie in 0 … {MAX_SEED}, got {self.seed}")
        digest = hashlib.sha256(self.name.encode()).digest()[:8]
        key = np.array([self.seed, int.from_bytes(digest, "little")], dtype=np.uint64)
        object.__setattr__(self, "_key", key)

    def words(self, step: int, count: int, lane: int = 0) -> UInt64[np.ndarray, " count"]:
        """Return `count` uniform 64-bit words of one step and lane."""
        counter = np.array([0, lane, step, self.split], dtype=np.uint64)
        bits = np.random.Philox(key=self._key, counter=counter)  # type: ignore[attr-defined]
        return bits.random_raw(count)

    def seed_word(self) -> int:
        """Return one 63-bit number to seed another generator with."""
        return int(self.words(0, 1)[0] >> np.uint64(1))


def uniform(words: UInt64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
    """Map words to multiples of 2⁻⁵³ in [0, 1)."""
    return (words >> np.uint64(11)) * 2.0**-53


def integers(words: UInt64[np.ndarray, "..."], bound: int) -> Int64[np.ndarray, "..."]:
    """Map words to 0 … bound − 1, with errors below 2⁻⁵²."""
    return (uniform(words) * bound).astype(np.int64)
