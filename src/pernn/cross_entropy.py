"""Read-out and cross-entropy together, some rows at a time.

The logits of a large vocabulary need more memory than everything else, and each is needed only
once. Here a chunk of them is made, turned into its own gradient and multiplied back, then the next
one takes its place.
"""

from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from pernn.errors import ConfigError
from pernn.kernels import autocast_dtype, find_kernels, product, without_autocast

CHUNK_SIZES = {"cpu": 2**23, "cuda": 2**26}
"""Logits at a time. On the CPU they fit into the last cache."""


def linear_cross_entropy(
    states: Float[Tensor, "rows hidden"],
    weight: Float[Tensor, "vocab hidden"],
    bias: Float[Tensor, " vocab"] | None,
    targets: Integer[Tensor, " rows"],
    weights: Float[Tensor, " rows"] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the cross-entropy and accuracy of linear logits, in chunks.

    Args:
        states: What is read out.
        weight: Of the output layer.
        bias: Of the output layer.
        targets: Ids.
        weights: Of each row in the mean, without gradients; all equal if absent.

    Returns:
        Nats per row; a share in [0, 1], which carries no gradient. A target as likely as another id
        counts as hit.

    Raises:
        ConfigError: In a second derivative.
    """
    loss, hits = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states, weight, bias, targets.long(), weights
    )
    return loss, hits


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed on the way forward, where the logits are."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        weights: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        wants = ctx.needs_input_grad
        num_rows, device = len(states), states.device.type
        dtype = autocast_dtype(device) or states.dtype
        size = max(1, CHUNK_SIZES.get(device, 2**21) // len(weight))
        losses = states.new_empty(num_rows)
        hits = torch.empty(num_rows, dtype=torch.bool, device=states.device)
        grad_states = torch.empty_like(states) if wants[0] else None
        # Of no rows nothing else would be written.
        blank = torch.empty_like if num_rows else torch.zeros_like
        grad_weight = blank(weight) if wants[1] else None
        grad_bias = torch.zeros_like(bias) if bias is not None and wants[2] else None
        output_layer = weight.to(dtype)
        # A GPU adds the bias on the way: a pass over the logits is a tenth of its time.
        shift = bias if device == "cuda" and dtype == states.dtype else None
        space = states.new_empty(min(size, num_rows), len(weight))
        with without_autocast(device):
            for start in range(0, num_rows, size):
                part = slice(start, start + size)
                rows = states[part].to(dtype)
                if shift is not None:
                    logits = torch.addmm(shift, rows, output_layer.t(), out=space[: len(rows)])
                else:
                    logits = _multiply(rows, output_layer.t(), space[: len(rows)])
                _cross_entropy(
                    logits,
                    bias if shift is None else None,
                    targets[part],
                    1 / num_rows if weights is None else weights[part],
                    gradient=any(wants[:3]),
                    losses=losses[part],
                    hits=hits[part],
                )
                grads = logits.to(dtype)
                if grad_states is not None:
                    _multiply(grads, output_layer, grad_states[part])
                if grad_weight is not None:
                    _multiply(grads.t(), rows, grad_weight, add=start > 0)
                if grad_bias is not None:
                    grad_bias += logits.sum(0)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        right = hits.to(states.dtype)
        share = right.mean() if weights is None else (right * weights).sum()
        ctx.mark_non_differentiable(share)
        return losses.mean() if weights is None else (losses * weights).sum(), share

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, grad_share: Tensor) -> tuple[Tensor | None, ...]:
        del grad_share
        if torch.is_grad_enabled():
            raise ConfigError(
                "linear_cross_entropy has no second derivative (create_graph=True): "
                "use torch.nn.functional.cross_entropy"
            )
        return (*(None if g is None else g * grad_loss for g in ctx.saved_tensors), None, None)


def _multiply(left: Tensor, right: Tensor, out: Tensor, *, add: bool = False) -> Tensor:
    """Multiply into float32, whatever the factors are."""
    if left.dtype == out.dtype:
        return product(left, right, out, add=add)
    found = left @ right
    return out.add_(found) if add else out.copy_(found)


def _cross_entropy(
    logits: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scale: float | Tensor,
    *,
    gradient: bool,
    losses: Tensor,
    hits: Tensor,
) -> None:
    """Fill losses and hits; logits become their gradient, times the scale, if it is wanted.

    The scale is one for all rows, or each row's own.
    """
    fits = logits.device.type == "cpu" and logits.dtype == torch.float32
    if fits and isinstance(scale, float) and find_kernels() is not None:
        given = targets.contiguous(), scale, gradient
        torch.ops.pernn.cross_entropy(logits, bias, *given, losses, hits)
        return
    if bias is not None:
        logits += bias
    ids = targets.unsqueeze(1)
    best, likeliest = logits.max(1, keepdim=True)
    found = logits.gather(1, ids)
    torch.ge(found.squeeze(1), best.squeeze(1), out=hits)
    odds = torch.softmax(logits, 1)
    losses.copy_((best - found - odds.gather(1, likeliest).log()).squeeze(1))
    if gradient:
        odds.scatter_add_(1, ids, odds.new_full(ids.shape, -1))
        torch.mul(odds, scale if isinstance(scale, float) else scale.unsqueeze(1), out=logits)
