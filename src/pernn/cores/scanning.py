"""What scans with a backward pass written by hand share: precision, products, first order."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from pernn.errors import ConfigError
from pernn.kernels import rounded, rounds_products

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


def factors_of(weight: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what makes factors of recurrent products: how they are rounded here and now."""
    device = weight.device
    if device.type == "cpu":
        rounds = weight.dtype == torch.float32 and rounds_products(device)
        return rounded if rounds else _unchanged
    enabled = torch.is_autocast_enabled(device.type)
    dtype = torch.get_autocast_dtype(device.type) if enabled else weight.dtype
    return lambda values: values.to(dtype)


def _unchanged(values: Tensor) -> Tensor:
    return values


def add_product(base: Tensor, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return `base + left @ right` in the type of `base`, whatever that of the factors is."""
    if right.dtype == base.dtype:
        return torch.addmm(base, left, right, out=out)
    return torch.add(base, left @ right, out=out)


def recurrent_gradient(
    grad_gates: Tensor, hidden: Tensor, outputs: Tensor, factor: Callable[[Tensor], Tensor]
) -> Tensor:
    """Σ_t δ_t h_{t−1}ᵀ as one product, the first step with the initial hidden state."""
    later = factor(grad_gates[1:].flatten(0, 1)).t() @ factor(outputs[:-1].flatten(0, 1))
    first = factor(grad_gates[0]).t() @ factor(hidden)
    return later.to(hidden.dtype) + first.to(hidden.dtype)
