"""Rules: input ids → target ids."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError


@runtime_checkable
class Rule(Protocol):
    """A deterministic function from inputs to targets, row by row."""

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
        """Return the expected predictions."""
        ...


@dataclass(frozen=True)
class Reverse:
    """The inputs, last one first.

    Example:
        8 29 2 11 → 11 2 29 8

    Source: Morita (2024), section 2.1.
    """

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
        """Reverse every row."""
        return np.ascontiguousarray(inputs[:, ::-1])


@dataclass(frozen=True)
class Sort:
    """The inputs in ascending order, repeated ids repeated.

    Example:
        8 29 2 8 → 2 8 8 29
    """

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
        """Sort every row."""
        return np.sort(inputs, axis=1)


@dataclass(frozen=True)
class Same:
    """The inputs in their own order.

    Example:
        8 29 2 11 → 8 29 2 11
    """

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
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

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
        """Add the halves of every row.

        Raises:
            ConfigError: If there are no two halves.
        """
        half, odd = divmod(inputs.shape[1], 2)
        if odd:
            raise ConfigError(
                f"delayed addition needs as many addends as tokens, got {inputs.shape[1]} in all"
            )
        sums: Int64[np.ndarray, "batch scored"] = inputs[:, half - 1 :: -1] + inputs[:, half:]
        return sums % self.vocab_size


@dataclass(frozen=True)
class Predecessor:
    """The id before the first occurrence of the last one.

    Example:
        8 29 2 11, then 2 → 29
    """

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
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
