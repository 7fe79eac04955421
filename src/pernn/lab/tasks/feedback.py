"""Inputs of the output phase."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError


@runtime_checkable
class Feedback(Protocol):
    """Tokens and queries around the inputs, and their embedding rows."""

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Names of the embedding rows after the ids', the query's first."""
        ...

    def num_queries(self, num_targets: int) -> int:
        """Count the query steps for that many targets."""
        ...

    def tokens(
        self,
        inputs: Int64[np.ndarray, "batch input_time"],
        targets: Int64[np.ndarray, "batch scored"],
        vocab_size: int,
    ) -> Int64[np.ndarray, "batch token_time"]:
        """Return all tokens that are shown before the queries."""
        ...


class _InputsOnly:
    def tokens(
        self,
        inputs: Int64[np.ndarray, "batch input_time"],
        targets: Int64[np.ndarray, "batch scored"],
        vocab_size: int,
    ) -> Int64[np.ndarray, "batch token_time"]:
        """Show the inputs and nothing else."""
        return inputs


@dataclass(frozen=True)
class Query(_InputsOnly):
    """The same learnable vector at every step of the output phase.

    Source: Morita (2024), section 4.1.
    """

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name the query's row."""
        return ("?",)

    def num_queries(self, num_targets: int) -> int:
        """Count the query steps for that many targets: one each."""
        return num_targets


@dataclass(frozen=True)
class Unprompted(_InputsOnly):
    """No query: the answers are due while the last inputs are shown."""

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name no row."""
        return ()

    def num_queries(self, num_targets: int) -> int:
        """Count no query steps."""
        return 0


@dataclass(frozen=True, kw_only=True)
class HoldAndEmit:
    """A learnable vector while inputs are held, another for the outputs.

    EMIT is the query, the embedding's row `vocab_size`; HOLD is the token `vocab_size + 1`.

    Args:
        hold_time: Steps between the inputs and the answers; without any there is no HOLD row.

    Raises:
        ConfigError: If the time is negative.
    """

    hold_time: int

    def __post_init__(self) -> None:
        if self.hold_time < 0:
            raise ConfigError(f"hold_time must be at least 0, got {self.hold_time}")

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name the rows that are shown."""
        return ("EMIT", "HOLD") if self.hold_time else ("EMIT",)

    def num_queries(self, num_targets: int) -> int:
        """Count the EMIT steps for that many targets: one each."""
        return num_targets

    def tokens(
        self,
        inputs: Int64[np.ndarray, "batch input_time"],
        targets: Int64[np.ndarray, "batch scored"],
        vocab_size: int,
    ) -> Int64[np.ndarray, "batch token_time"]:
        """Show the inputs, then HOLD."""
        holds = np.full((len(inputs), self.hold_time), vocab_size + 1, dtype=np.int64)
        return np.concatenate([inputs, holds], axis=1)


@dataclass(frozen=True)
class OwnOutput:
    """The previous output, in training the true one (teacher forcing).

    The sign is DUMMY, the embedding's row `vocab_size`. The task shows the true outputs; a network
    with a `decode` of its own puts its outputs in their place.

    Source: Morita (2024), version 1, appendix B.2.
    """

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name the row that is shown before there is an output."""
        return ("DUMMY",)

    def num_queries(self, num_targets: int) -> int:
        """Count no query steps."""
        return 0

    def tokens(
        self,
        inputs: Int64[np.ndarray, "batch input_time"],
        targets: Int64[np.ndarray, "batch scored"],
        vocab_size: int,
    ) -> Int64[np.ndarray, "batch token_time"]:
        """Show the inputs, DUMMY, and all targets but the last one."""
        dummy = np.full((len(inputs), 1), vocab_size, dtype=np.int64)
        return np.concatenate([inputs, dummy, targets[:, :-1]], axis=1)
