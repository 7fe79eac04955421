"""Matrix products: by compiled kernels where there are any and they pay, else PyTorch's."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from .loading import Kernels, find_kernels

LEAST = {3: 128, 1: 64}
"""Parts of a number (three for float32, one if factors are rounded) → rows and columns of a product
below which PyTorch's own is as fast: docs/performance.md has the measurements."""
LEAST_DEPTH = 32


def rounds_products(device: torch.device) -> bool:
    """Say whether float32 products round their factors to bfloat16 here and now.

    On the CPU that is PyTorch's own setting of the precision inside float32 products, or autocast;
    elsewhere it is autocast.
    """
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type) == torch.bfloat16
    if device.type != "cpu":
        return False
    return bool(torch.backends.mkldnn.matmul.fp32_precision == "bf16")  # type: ignore[attr-defined]


def product(
    left: Float[Tensor, "rows inner"],
    right: Float[Tensor, "inner columns"],
    out: Float[Tensor, "rows columns"] | None = None,
    *,
    add: bool = False,
) -> Float[Tensor, "rows columns"]:
    """Multiply two matrices, outside of autograd.

    Args:
        left: Its rows or its columns lie in one piece.
        right: Likewise.
        out: Where the result goes; a new tensor if absent.
        add: Whether to add to what is there.
    """
    if out is None:
        out = left.new_empty(len(left), right.shape[1])
    kernels, parts = _units_for(left, right, out)
    if kernels is not None:
        kernels.operators.matmul(out, left, right, parts, add)
    elif add:
        out.addmm_(left, right)
    else:
        torch.mm(left, right, out=out)
    return out


def linear(
    inputs: Float[Tensor, "*rows width"],
    weight: Float[Tensor, "out width"],
    bias: Float[Tensor, " out"] | None = None,
) -> Float[Tensor, "*rows out"]:
    """`torch.nn.functional.linear`, forward and back by compiled products where they pay."""
    rows = inputs.flatten(0, -2) if inputs.dim() > 2 else inputs
    if rows.dim() < 2 or _units_for(rows, weight.t(), None)[0] is None:
        return F.linear(inputs, weight, bias)
    found: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    return found.view(*inputs.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        found = product(rows, weight.t())
        return found if bias is None else found.add_(bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants = ctx.needs_input_grad
        # To be differentiated again, a gradient must be made of PyTorch's own operations.
        multiply = torch.mm if torch.is_grad_enabled() else product
        grad = grad.contiguous()
        return (
            multiply(grad, weight) if wants[0] else None,
            multiply(grad.t(), rows) if wants[1] else None,
            grad.sum(0) if wants[2] else None,
        )


def _units_for(left: Tensor, right: Tensor, out: Tensor | None) -> tuple[Kernels | None, int]:
    """Give the kernels if they should do a product, and the parts of each number."""
    parts = 1 if rounds_products(left.device) else 3
    least = LEAST[parts]
    fits = (
        left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and (out is None or (out.dtype == torch.float32 and out.stride(1) == 1))
        and min(len(left), right.shape[1]) >= least
        and right.shape[0] >= LEAST_DEPTH
        and all(1 in (side.stride(0), side.stride(1)) for side in (left, right))
    )
    if not fits:
        return None, parts
    kernels = find_kernels()
    return (kernels if kernels is not None and parts in kernels.product_parts else None), parts
