"""What is to be answered: input ids → target ids."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64


@runtime_checkable
class Rule(Protocol):
    """A deterministic function from inputs to targets, row by row."""

    def targets(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Int64[np.ndarray, "batch scored"]:
        """Give the expected answers."""
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
