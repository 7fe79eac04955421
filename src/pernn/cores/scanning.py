"""What scans with a backward pass written by hand share: precision, products, first order."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from pernn.errors import ConfigError

Args = ParamSpec("Args")
Gradients = TypeVar("Gradients")


def first_order(backward: Callable[Args, Gradients]) -> Callable[Args, Gradients]:
    """Refuse to differentiate a hand-written backward pass again.

    PyTorch's `once_differentiable` lets a second derivative through in silence, without the
    recurrence's share, whenever the incoming gradient is a constant.
    """

    @wraps(backward)
    def checked(*args: Args.args, **options: Args.kwargs) -> Gradients:
        if torch.is_grad_enabled():
            raise ConfigError(
                "the cores of pernn have no second derivative (create_graph=True): "
                "use core.to_torch()"
            )
        return backward(*args, **options)

    return checked


def matmul_dtype(gates: Tensor) -> torch.dtype:
    """The precision of the recurrent products: autocast's if it is on, else the gates' own."""
    device = gates.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else gates.dtype


def add_product(base: Tensor, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """`base + left @ right`, where `left` is rounded to `right`'s type and `base`'s is kept."""
    if right.dtype == base.dtype:
        return torch.addmm(base, left, right, out=out)
    return torch.add(base, left.to(right.dtype) @ right, out=out)


def recurrent_gradient(
    grad_gates: Tensor, hidden: Tensor, outputs: Tensor, dtype: torch.dtype
) -> Tensor:
    """Σ_t δ_t h_{t−1}ᵀ as one product, the first step with the initial hidden state."""
    left, right = (part.flatten(0, 1).to(dtype) for part in (grad_gates[1:], outputs[:-1]))
    return (left.t() @ right).to(hidden.dtype) + grad_gates[0].t() @ hidden
