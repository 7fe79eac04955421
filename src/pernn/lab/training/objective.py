"""Objectives, on a batch in training and on held-out sequences.

They are the cross-entropy of ids, or one minus vectors' cosine.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from pernn.cross_entropy import linear_cross_entropy
from pernn.kernels import linear
from pernn.lab.interfaces import (
    UNSCORED,
    Batch,
    BatchStream,
    Decoder,
    Measurement,
    Predictions,
    SequenceModel,
    Table,
)

from .config import Precision
from .devices import rounding

BoolArray = Bool[np.ndarray, "batch scored"]

Outputs = Float[Tensor, "*rows width"]
Targets = Int[Tensor, "*rows"] | Float[Tensor, "*rows width"]


@dataclass(frozen=True)
class DeviceBatch:
    """Sequences on the device: a batch, or a piece of one.

    Attributes:
        tokens: What the network is shown.
        targets: Ids or vectors expected of the scored steps; one after another beside `rows`.
        num_queries: Steps after the tokens, with the query as input.
        num_scored: Last steps that have targets.
        rows: Which of these steps, counted time first, are scored; all if absent.
        weights: Share of each step in the batch's mean, 0 where none is scored; equal if absent.
        share: Of these sequences in the batch's mean; 1 beside `weights`, which contain it.
    """

    tokens: Shaped[Tensor, "batch input_time ..."]
    targets: Shaped[Tensor, "..."]
    num_queries: int
    num_scored: int
    rows: Int[Tensor, " rows"] | None = None
    weights: Float[Tensor, "batch scored"] | None = None
    share: float = 1.0

    @classmethod
    def of(
        cls, batch: Batch, device: torch.device, num_targets: int | None = None
    ) -> "DeviceBatch":
        """Return a batch on the device, without waiting for it.

        A mask would have the device counted, so the steps that are scored are told otherwise: on
        the CPU by their rows, elsewhere by weights, so that all batches have the same shapes.

        Args:
            batch: Or a piece of one.
            device: Where it goes.
            num_targets: Targets of the whole batch, if this is a piece.
        """
        mask, targets, rows, weights = find_scored(batch.targets), batch.targets, None, None
        count = np.count_nonzero(mask)
        share = count / num_targets if num_targets else 1.0
        if count < mask.size and device.type == "cpu":
            sequences, steps = np.nonzero(mask)
            rows, targets = _move(steps * len(mask) + sequences, device), targets[mask]
        elif count < mask.size:
            total = np.float32(max(1, num_targets or count))
            weights, share = _move(mask.astype(np.float32) / total, device), 1.0
            targets = np.where(mask, targets, 0)
        tokens, wanted = _move(batch.tokens, device), _move(targets, device)
        return cls(tokens, wanted, batch.num_queries, batch.targets.shape[1], rows, weights, share)

    @property
    def shape(self) -> tuple[object, ...]:
        """The shape that batches of one recording share."""
        sizes = self.tokens.shape, self.num_queries, self.num_scored
        return *sizes, self.weights is None, self.share

    def tensors(self) -> list[Tensor]:
        """Return everything that lies on the device."""
        return [value for value in vars(self).values() if isinstance(value, Tensor)]


def show(batch: Batch, device: torch.device, micro_batch: int | None = None) -> list[DeviceBatch]:
    """Return a batch on the device, in pieces of `micro_batch` sequences."""
    size = micro_batch or len(batch.tokens)
    if size >= len(batch.tokens):
        return [DeviceBatch.of(batch, device)]
    total = int(np.count_nonzero(find_scored(batch.targets)))
    pieces = []
    for start in range(0, len(batch.tokens), size):
        tokens, targets = batch.tokens[start : start + size], batch.targets[start : start + size]
        if device.type == "cpu" and total and not find_scored(targets).any():
            continue  # the mean of nothing is no number
        pieces.append(DeviceBatch.of(Batch(tokens, batch.num_queries, targets), device, total))
    return pieces


def _move(array: Shaped[np.ndarray, "..."], device: torch.device) -> Tensor:
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


Loss = tuple[Float[Tensor, ""], Float[Tensor, ""]]
"""Mean over the scored steps, and the share of ids that are right; NaN for vectors."""


def batch_loss(network: SequenceModel, shown: DeviceBatch) -> Loss:
    """Return a network's loss and share of right answers.

    Of a piece of a batch both are what it adds to the batch's.
    """
    targets, weights, layer = shown.targets, shown.weights, network.output_layer
    states = network.states(shown.tokens, shown.num_queries, num_scored=shown.num_scored)
    if targets.is_floating_point():
        loss = losses(layer(states), targets).mean() * shown.share
        return loss, torch.full_like(loss, torch.nan)
    # Time first, as the states lie in memory.
    states = states.transpose(0, 1).flatten(0, 1)
    if shown.rows is not None:
        states = states.index_select(0, shown.rows)
    else:
        targets = targets.t().flatten()
    weights = None if weights is None else weights.t().flatten()
    loss, right = linear_cross_entropy(states, layer.weight, layer.bias, targets, weights)
    return loss * shown.share, right * shown.share


def losses(outputs: Outputs, targets: Targets) -> Float[Tensor, "*rows"]:
    """Return the loss of every step.

    Args:
        outputs: Logits if the targets are ids, else vectors of any length.
        targets: Ids or vectors, one for each output.

    Returns:
        Nats per token, or 1 − cosine similarity, at least in float32.

    Source: Morita (2024), section 4.1; version 1, appendix B.3, for vectors.
    """
    outputs = outputs if outputs.dtype == torch.float64 else outputs.float()
    if targets.is_floating_point():
        return 1 - F.cosine_similarity(outputs, targets, dim=-1)
    found = F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")
    return found.view(targets.shape)


def predictions(outputs: Outputs, targets: Targets) -> Targets:
    """Return what the outputs say: the likeliest ids, or the vectors themselves."""
    return outputs.float() if targets.is_floating_point() else outputs.argmax(dim=-1)


def find_scored(targets: Shaped[np.ndarray, "batch scored ..."]) -> BoolArray:
    """Return which steps are scored."""
    is_id = targets.dtype == np.int64
    return targets != UNSCORED if is_id else np.ones(targets.shape[:2], dtype=bool)


CHUNK_SIZE = 256
"""Sequences at a time: bounds the memory, and is fixed because it can change the last bits."""
MAX_LOGITS = 2**24
"""Outputs that are computed at a time: states are read out in pieces, and fewer sequences are
decoded at once."""

Index = tuple[Tensor, ...]
"""Sequences and steps; a mask would have to be counted on the device."""
Ask = Callable[[Tensor, int, Index], Iterable[Tensor]]
"""Tokens, number of scored steps, which of these → outputs, row by row."""


@torch.no_grad()
def predict(
    model: SequenceModel, batch: Batch, device: torch.device, precision: Precision = "fp32"
) -> Predictions:
    """Predict a batch in chunks, the truth fed back."""

    def ask(tokens: Tensor, num_scored: int, scored: Index) -> Iterator[Tensor]:
        states = model.states(tokens, batch.num_queries, num_scored=num_scored)
        for rows in states[scored].split(max(1, MAX_LOGITS // model.vocab_size)):
            yield linear(rows, model.output_layer.weight, model.output_layer.bias)

    return _answer(ask, 1, batch, device, precision)


@torch.no_grad()
def decode(
    model: Decoder, batch: Batch, device: torch.device, precision: Precision = "fp32"
) -> Predictions:
    """Predict a batch from the model's own outputs, fed back."""

    def ask(tokens: Tensor, num_scored: int, scored: Index) -> Iterable[Tensor]:
        prompt = tokens[:, : tokens.shape[1] - num_scored + 1]
        return [model.decode(prompt, num_scored)[scored]]

    return _answer(ask, model.vocab_size, batch, device, precision)


def evaluate(
    model: SequenceModel, stream: BatchStream, device: torch.device, precision: Precision = "fp32"
) -> Measurement:
    """Measure loss and the task's metrics on held-out sequences.

    A model that is fed its own outputs is measured that way, and the table `by_feedback` also says
    how it does with the truth fed back, as in training.
    """
    batch = stream.test()
    own = decode(model, batch, device, precision) if isinstance(model, Decoder) else None
    return _measure(stream, predict(model, batch, device, precision), own)


def evaluate_diverged(model: SequenceModel, stream: BatchStream) -> Measurement:
    """Measure a network that diverged: every prediction counts as the worst.

    No id is right and none is in ascending order, vectors point away from their targets, and the
    loss is that of guessing among all ids (2 of vectors, where it is 1 − cosine). The metrics and
    tables are those of `evaluate`.
    """
    targets = stream.test().targets
    if targets.dtype == np.int64:
        # Below all ids, and falling.
        wrong = np.broadcast_to(-1 - np.arange(targets.shape[1]), targets.shape)
        nats = np.where(targets == UNSCORED, np.nan, np.log(model.vocab_size))
        said = Predictions(wrong.astype(np.int64), nats)
    else:
        said = Predictions(-targets, np.full(targets.shape[:2], 2.0))
    return _measure(stream, said, said if isinstance(model, Decoder) else None)


def _measure(stream: BatchStream, said: Predictions, own_said: Predictions | None) -> Measurement:
    """Combine what is measured with the truth and, if there are any, with own outputs."""
    found = _with_loss(stream, said)
    if own_said is None:
        return found
    own = _with_loss(stream, own_said)
    table = {name: [own.metrics[name], value] for name, value in found.metrics.items()}
    by_feedback: Table = {"feedback": ["own output", "truth"], **table}
    return Measurement(own.metrics, {**own.tables, "by_feedback": by_feedback})


def _with_loss(stream: BatchStream, said: Predictions) -> Measurement:
    found, loss = stream.measure(said), float(np.nanmean(said.losses))
    return Measurement({"loss": loss, **found.metrics}, found.tables)


def _answer(
    ask: Ask, width: int, batch: Batch, device: torch.device, precision: Precision
) -> Predictions:
    said = np.full_like(batch.targets, UNSCORED)
    cost = np.full(batch.targets.shape[:2], np.nan)
    for rows, steps in _chunks(batch, width):
        surplus = batch.targets.shape[1] - steps
        tokens = batch.tokens[rows, : batch.tokens.shape[1] - surplus]
        expected = batch.targets[rows, :steps]
        mask = find_scored(expected)
        scored = tuple(torch.from_numpy(axis).to(device) for axis in np.nonzero(mask))
        targets = torch.from_numpy(expected[mask]).to(device)
        found = []
        with rounding(precision, device):
            for outputs in ask(torch.from_numpy(tokens).to(device), steps, scored):
                part, targets = targets[: len(outputs)], targets[len(outputs) :]
                found.append((predictions(outputs, part), losses(outputs, part)))
        ids, nats = (torch.cat(parts) for parts in zip(*found, strict=True))
        said[rows, :steps][mask] = ids.cpu().numpy()
        cost[rows, :steps][mask] = nats.cpu().numpy()
    return Predictions(said, cost)


def _chunks(batch: Batch, width: int) -> Iterator[tuple[slice, int]]:
    """Return rows that go together, and how many of their steps are not all padding."""
    count, num_scored = batch.targets.shape[:2]
    size = min(CHUNK_SIZE, max(1, MAX_LOGITS // (num_scored * width)))
    for start in range(0, count, size):
        rows = slice(start, start + size)
        steps = num_scored
        if batch.targets.ndim == 2 and not batch.num_queries:
            scored = (batch.targets[rows] != UNSCORED).any(axis=0)
            # Without queries every step has a token, so what follows the last target can be cut.
            steps = int(np.flatnonzero(scored).max(initial=0)) + 1
        yield rows, steps
