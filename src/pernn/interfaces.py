"""The seams between rooms: what data, models and cores owe each other. Nothing here runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Sequences to answer: tokens in, then queries; the targets stand at the last steps.

    Attributes:
        tokens: Ids of the input phase; K + 1 and above are further rows of the embedding.
        num_queries: Steps after them whose input is the query row, the same for all sequences.
        targets: Ids expected at the last `scored` of all steps; only these are scored.
    """

    tokens: Int64[np.ndarray, "batch input_time"]
    num_queries: int
    targets: Int64[np.ndarray, "batch scored"]


@runtime_checkable
class BatchStream(Protocol):
    """Data of one trial: a pure function of the step."""

    def train(self, step: int, batch_size: int) -> Batch:
        """Give the training batch of update `step`, counted from 0."""
        ...

    def test(self) -> Batch:
        """Give all held-out sequences, none of which `train` ever shows."""
        ...


@runtime_checkable
class SequenceModel(Protocol):
    """A network that answers queries about a sequence of tokens."""

    def __call__(
        self, tokens: "Tensor", num_queries: int = 0, *, num_scored: int | None = None
    ) -> "Float[Tensor, 'batch scored vocab']":
        """Give the logits of the last `num_scored` of all `input_time + num_queries` steps."""
        ...


@runtime_checkable
class Recurrence(Protocol):
    """A core: vectors → states, the input projection apart from the recurrence."""

    input_size: int
    hidden_size: int

    def project(
        self, inputs: "Float[Tensor, '*rows width']", *, offset: int = 0, bias: bool = True
    ) -> "Float[Tensor, '*rows gate']":
        """Apply the input weights of features `offset …`; linear but for the bias."""
        ...

    def recur(
        self, gates: "Float[Tensor, 'batch time gate']", state: Any = None
    ) -> "tuple[Float[Tensor, 'batch time hidden'], Any]":
        """Run over time from projected inputs; gives the outputs and the final state."""
        ...
