"""Projected inputs by parts, each stored once."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Projected:
    """Projected inputs of every step, time first.

    At step t of the input, sequence b is fed row `tokens[t, b]` of the table, or row t · batch + b
    if there are no tokens; afterwards every sequence is fed the query's row. The step's encoding is
    added to either.

    Attributes:
        table: Projected vectors.
        batch: Number of sequences.
        input_time: Steps of the input.
        num_queries: Steps after them.
        tokens: Rows of the table.
        query_row: Row of the query; matters only if there are queries.
        encodings: Projected encodings of all steps, if there are any.
    """

    table: Float[Tensor, "rows gate"]
    batch: int
    input_time: int
    num_queries: int = 0
    tokens: Int[Tensor, "input_time batch"] | None = None
    query_row: int = 0
    encodings: Float[Tensor, "time gate"] | None = None

    @classmethod
    def of(cls, gates: Float[Tensor, "time batch gate"]) -> "Projected":
        """Take inputs that are whole."""
        return cls(gates.flatten(0, 1), gates.shape[1], gates.shape[0])

    @property
    def num_steps(self) -> int:
        """Steps of both phases."""
        return self.input_time + self.num_queries

    def plus(self, encodings: Float[Tensor, "time gate"]) -> "Projected":
        """Add to the encodings."""
        return replace(
            self, encodings=encodings if self.encodings is None else self.encodings + encodings
        )

    def gates(self) -> Float[Tensor, "time batch gate"]:
        """Put the parts together."""
        if self.tokens is None:
            count = self.input_time * self.batch
            inputs: Tensor = self.table[:count].unflatten(0, (self.input_time, self.batch))
        else:
            inputs = F.embedding(self.tokens, self.table)
        if not self.num_queries:
            return inputs if self.encodings is None else inputs + self.encodings.unsqueeze(1)
        queries = self.table[self.query_row].expand(self.num_queries, 1, -1)
        if self.encodings is not None:
            encodings = self.encodings.unsqueeze(1)
            inputs, queries = (
                inputs + encodings[: self.input_time],
                queries + encodings[self.input_time :],
            )
        return torch.cat([inputs, queries.expand(-1, self.batch, -1)])
