"""Pairs of sequences that share the target token and all before it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError

ALL = "all"
"""The one condition of a task whose ids are all alike."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of sequences, and the two steps between which gradients are compared.

    Attributes:
        first: Tokens of the first sequence of each pair.
        second: Tokens of the second, equal to the first up to step `source`.
        num_queries: Steps after them whose input is the query row.
        source: Step of the target token, counted from 1: gradients are taken with respect to the
            latent state after it.
        target: Step at which the target token is to be given back: gradients are those of the
            output of this step.
        conditions: Class of the target, class of the disturbants.
        condition: Which of the conditions each pair belongs to.

    Raises:
        ConfigError: If the two sides, or the steps, do not fit each other.
    """

    first: Int64[np.ndarray, "pairs input_time"]
    second: Int64[np.ndarray, "pairs input_time"]
    num_queries: int
    source: int
    target: int
    conditions: tuple[tuple[str, str], ...]
    condition: Int64[np.ndarray, " pairs"]

    def __post_init__(self) -> None:
        check_steps(self.source, self.target, self.first.shape[1] + self.num_queries)
        shared = slice(0, self.source)
        if not np.array_equal(self.first[:, shared], self.second[:, shared]):
            raise ConfigError(f"the sequences of a pair must share their first {self.source} ids")

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.first)


def check_steps(source: int, target: int, num_steps: int) -> None:
    """Refuse steps that are not there, or in the wrong order.

    Raises:
        ConfigError: If there are no such steps, or the target is not after the source.
    """
    if not 1 <= source < target <= num_steps:
        raise ConfigError(
            f"source and target must be steps 1 … {num_steps}, the source before the target; "
            f"got {source} and {target}"
        )
