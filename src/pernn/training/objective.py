"""What training minimises: cross-entropy of ids, or one minus the cosine of vectors."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from pernn.interfaces import UNSCORED, LinearReadout, SequenceModel

from .readout import linear_cross_entropy

BoolArray = Bool[np.ndarray, "batch scored"]

Outputs = Float[Tensor, "*rows width"]
Targets = Int[Tensor, "*rows"] | Float[Tensor, "*rows width"]


def batch_loss(
    network: SequenceModel,
    tokens: Shaped[Tensor, "batch input_time ..."],
    num_queries: int,
    num_scored: int,
    scored: Bool[Tensor, "batch scored"] | None,
    targets: Shaped[Tensor, "..."],
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Run a network on a batch; give what it minimises and how much of it is right.

    Args:
        network: What is trained.
        tokens: What it is shown.
        num_queries: Steps that follow, with the query as input.
        num_scored: Last steps that have targets.
        scored: Which of them do, all if absent.
        targets: Ids or vectors, one for each scored step.

    Returns:
        Mean loss over the scored steps, and the share of ids that are right; NaN for vectors.
    """
    if targets.is_floating_point() or not isinstance(network, LinearReadout):
        outputs = network(tokens, num_queries, num_scored=num_scored, scored=scored)
        loss = mean_loss(outputs, targets)
        if targets.is_floating_point():
            return loss, torch.full_like(loss, torch.nan)
        return loss, (outputs.argmax(-1) == targets).to(loss.dtype).mean()
    states = network.states(tokens, num_queries, num_scored=num_scored, scored=scored)
    if scored is None:
        # Time first, as the states lie in memory.
        states, targets = states.transpose(0, 1).flatten(0, 1), targets.t().flatten()
    return linear_cross_entropy(states, network.readout.weight, network.readout.bias, targets)


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
    return F.cross_entropy(outputs.float().flatten(0, -2), targets.flatten())


def losses(outputs: Outputs, targets: Targets) -> Float[Tensor, "*rows"]:
    """Give the loss of every step."""
    outputs = outputs.float()
    if targets.is_floating_point():
        return 1 - F.cosine_similarity(outputs, targets, dim=-1)
    found = F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none")
    return found.view(targets.shape)


def predictions(outputs: Outputs, targets: Targets) -> Targets:
    """Give what the outputs say: the likeliest ids, or the vectors themselves."""
    return outputs.float() if targets.is_floating_point() else outputs.argmax(dim=-1)


def find_scored(targets: Shaped[np.ndarray, "batch scored ..."]) -> BoolArray | None:
    """Say which steps are scored; `None` if all are."""
    if targets.dtype != np.int64:
        return None
    scored = targets != UNSCORED
    return None if scored.all() else scored
