"""Evaluation of a model on held-out sequences."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from pernn.kernels import linear
from pernn.lab.interfaces import (
    UNSCORED,
    Batch,
    BatchStream,
    Decoder,
    LinearOutput,
    Measurement,
    Predictions,
    SequenceModel,
    Table,
)

from .config import Precision
from .devices import rounding
from .objective import find_scored, losses, predictions

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
    model: LinearOutput, batch: Batch, device: torch.device, precision: Precision = "fp32"
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
    model: LinearOutput, stream: BatchStream, device: torch.device, precision: Precision = "fp32"
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
        losses = np.where(targets == UNSCORED, np.nan, np.log(model.vocab_size))
        predictions = Predictions(wrong.astype(np.int64), losses)
    else:
        predictions = Predictions(-targets, np.full(targets.shape[:2], 2.0))
    return _measure(stream, predictions, predictions if isinstance(model, Decoder) else None)


def _measure(
    stream: BatchStream, predictions: Predictions, own_predictions: Predictions | None
) -> Measurement:
    """Combine what is measured with the truth and, if there are any, with own outputs."""
    found = _with_loss(stream, predictions)
    if own_predictions is None:
        return found
    own = _with_loss(stream, own_predictions)
    table = {name: [own.metrics[name], value] for name, value in found.metrics.items()}
    by_feedback: Table = {"feedback": ["own output", "truth"], **table}
    return Measurement(own.metrics, {**own.tables, "by_feedback": by_feedback})


def _with_loss(stream: BatchStream, predictions: Predictions) -> Measurement:
    found, loss = stream.measure(predictions), float(np.nanmean(predictions.losses))
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
