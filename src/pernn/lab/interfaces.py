"""The interfaces between packages: what data and models promise. Nothing here runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

if TYPE_CHECKING:
    from torch import Tensor, nn


UNSCORED = -100
"""Stands in ids of targets where no answer is expected; the mark that PyTorch's losses skip."""

Table = Mapping[str, Sequence[Any]]
"""Column → its values, one per row; all columns are equally long."""


@dataclass(frozen=True)
class Batch:
    """Sequences of a task: tokens, then queries, with targets at the end.

    Attributes:
        tokens: Ids of the input phase; K and above are further rows of the embedding. Vectors if
            the vocabulary is infinite.
        num_queries: Steps after them whose input is the query row, the same for all sequences.
        targets: Ids, or vectors, expected at the last `scored` of all steps; only these are
            scored, and of the ids only those that are not `UNSCORED`.
    """

    tokens: Int64[np.ndarray, "batch input_time"] | Float32[np.ndarray, "batch input_time width"]
    num_queries: int
    targets: Int64[np.ndarray, "batch scored"] | Float32[np.ndarray, "batch scored width"]


@dataclass(frozen=True)
class Predictions:
    """A network's predictions of a batch.

    Attributes:
        values: The likeliest ids, or the vectors, at all steps that have a target.
        losses: What each of them cost: nats, or 1 − cosine; NaN where nothing is scored.
    """

    values: Int64[np.ndarray, "batch scored"] | Float32[np.ndarray, "batch scored width"]
    losses: Float64[np.ndarray, "batch scored"]


@dataclass(frozen=True)
class Measurement:
    """Metrics of predictions.

    Attributes:
        metrics: Name → value over the whole batch.
        tables: Name → values apart by position, by length or by condition; one row each.
    """

    metrics: Mapping[str, float]
    tables: Mapping[str, Table] = field(default_factory=dict)


@runtime_checkable
class BatchStream(Protocol):
    """Data of one trial: a pure function of the step."""

    def train(self, step: int, batch_size: int) -> Batch:
        """Return the training batch of update `step`, counted from 0."""

    def test(self) -> Batch:
        """Return all held-out sequences, none of which `train` ever shows."""

    def measure(self, predictions: Predictions) -> Measurement:
        """Measure the answers to `test`."""


@runtime_checkable
class Task(Protocol):
    """A task: its shape, and its data by seed.

    A stream may have a `digest` of the files that it reads; a run is then not resumed on other
    files.
    """

    @property
    def network(self) -> Literal["queried", "autoregressive", "coded", "vector"]:
        """The sort of network: with queries, fed outputs, codes or vectors.

        A coded task has a `code_size`, and tokens whose first number is the id.
        """

    @property
    def vocab_size(self) -> int:
        """Number of token ids K, or the vectors' width."""

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Names of the embedding rows from K on, the query's first."""

    @property
    def num_steps(self) -> int:
        """Number of time steps of the longest sequence, both phases."""

    @property
    def num_queries(self) -> int:
        """Number of queries at the end."""

    @property
    def num_scored(self) -> int:
        """Number of targets of the longest sequence."""

    def stream(self, seed: int) -> BatchStream:
        """Return the data of one seed."""


@runtime_checkable
class SequenceModel(Protocol):
    """A network that answers queries by a linear map of its states.

    Attributes:
        vocab_size: Width of its outputs.
    """

    vocab_size: int

    @property
    def output_layer(self) -> "nn.Linear":
        """The map."""

    def states(
        self, tokens: "Tensor", num_queries: int = 0, *, num_scored: int | None = None
    ) -> "Float[Tensor, 'batch scored hidden']":
        """Return what the map reads in the last `num_scored` steps."""


@runtime_checkable
class Decoder(SequenceModel, Protocol):
    """A network whose inputs in the output phase are its own outputs."""

    def decode(self, prompt: "Tensor", num_outputs: int) -> "Float[Tensor, 'batch scored vocab']":
        """Return logits of the prompt's last step and of fed-back ones."""
