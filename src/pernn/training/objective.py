"""What training minimises: cross-entropy of ids, or one minus the cosine of vectors."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from pernn.interfaces import UNSCORED, Batch, LinearOutput, SequenceModel

from .cross_entropy import linear_cross_entropy

BoolArray = Bool[np.ndarray, "batch scored"]

Outputs = Float[Tensor, "*rows width"]
Targets = Int[Tensor, "*rows"] | Float[Tensor, "*rows width"]


@dataclass(frozen=True)
class DeviceBatch:
    """A batch on the device.

    Attributes:
        tokens: What the network is shown.
        targets: Ids or vectors expected of the scored steps; one after another if these are named.
        scored: Which of the last steps are scored; all if absent.
        num_queries: Steps after the tokens, with the query as input.
        num_scored: Last steps that have targets.
    """

    tokens: Shaped[Tensor, "batch input_time ..."]
    targets: Shaped[Tensor, "..."]
    scored: Bool[Tensor, "batch scored"] | None
    num_queries: int
    num_scored: int

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> "DeviceBatch":
        """Move a batch to the device without waiting for it."""
        mask = find_scored(batch.targets)
        targets = batch.targets if mask is None else batch.targets[mask]
        return cls(
            _move(batch.tokens, device),
            _move(targets, device),
            None if mask is None else _move(mask, device),
            batch.num_queries,
            batch.targets.shape[1],
        )

    @property
    def shape(self) -> tuple[object, ...]:
        """What batches have in common that one recording serves."""
        return self.tokens.shape, self.num_queries, self.num_scored


def _move(array: Shaped[np.ndarray, "..."], device: torch.device) -> Tensor:
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


Loss = tuple[Float[Tensor, ""], Float[Tensor, ""]]
"""Mean over the scored steps, and the share of ids that are right; NaN for vectors."""


def batch_loss(network: SequenceModel, batch: DeviceBatch) -> Loss:
    """Run a network on a batch; return what it minimises and how much of it is right."""
    if not isinstance(network, LinearOutput):
        return _loss_of(
            network(
                batch.tokens, batch.num_queries, num_scored=batch.num_scored, scored=batch.scored
            ),
            batch.targets,
        )
    states, targets = (
        network.states(
            batch.tokens, batch.num_queries, num_scored=batch.num_scored, scored=batch.scored
        ),
        batch.targets,
    )
    if targets.is_floating_point():
        return _loss_of(network.output_layer(states), targets)
    if batch.scored is None:
        # Time first, as the states lie in memory.
        states, targets = states.transpose(0, 1).flatten(0, 1), targets.t().flatten()
    return linear_cross_entropy(
        states, network.output_layer.weight, network.output_layer.bias, targets
    )


def _loss_of(outputs: Outputs, targets: Targets) -> Loss:
    loss = mean_loss(outputs, targets)
    if targets.is_floating_point():
        return loss, torch.full_like(loss, torch.nan)
    return loss, (outputs.argmax(-1) == targets).to(loss.dtype).mean()


def mean_loss(outputs: Outputs, targets: Targets) -> Float[Tensor, ""]:
    """Average over all scored steps of the batch.

    Args:
        outputs: Logits if the targets are ids, else vectors of any length.
        targets: Ids or vectors, one for each output.

    Returns:
        Nats per token, or 1 − cosine similarity.

    Source: Morita (2024), section 4.1; version 1, appendix B.3, for vectors.
    """
    if targets.is_floating_point():
        return losses(outputs, targets).mean()
    return F.cross_entropy(_widened(outputs).flatten(0, -2), targets.flatten())


def losses(outputs: Outputs, targets: Targets) -> Float[Tensor, "*rows"]:
    """Return the loss of every step."""
    outputs = _widened(outputs)
    if targets.is_floating_point():
        return 1 - F.cosine_similarity(outputs, targets, dim=-1)
    found = F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")
    return found.view(targets.shape)


def _widened(outputs: Outputs) -> Outputs:
    """Return at least float32; float64 stays what it is."""
    return outputs if outputs.dtype == torch.float64 else outputs.float()


def predictions(outputs: Outputs, targets: Targets) -> Targets:
    """Return what the outputs say: the likeliest ids, or the vectors themselves."""
    return outputs.float() if targets.is_floating_point() else outputs.argmax(dim=-1)


def find_scored(targets: Shaped[np.ndarray, "batch scored ..."]) -> BoolArray | None:
    """Return which steps are scored; `None` if all are."""
    if targets.dtype != np.int64:
        return None
    scored = targets != UNSCORED
    return None if scored.all() else scored
