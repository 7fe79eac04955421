"""Shapes at which our kernels beat PyTorch's recurrent operators on dense vectors."""

import torch
from torch import Tensor

from pernn.kernels import is_transformed, rounds_products

from .scanning import kernels_fit

Size = int | Tensor
"""A tensor where `torch.jit.trace` is at work."""
LEAST_STEPS = {"elman": 16, "gru": 8}
"""Fewest steps for which kernels are faster: for fewer, packing the weights costs too much."""
MANY = 64
"""Steps that pay for the packing even if there is no way back; sequences that no longer do."""
WIDEST = 256
"""Widest state of which the same is true."""
NARROW = 64
"""Widest state of an Elman layer whose kernels are faster for many sequences."""
LARGEST_STEP = 2**13
"""Numbers in the states of one step above which the operator, product by product, is as fast."""
LARGEST = 2**21
"""Numbers in the states of many sequences from which on memory, not arithmetic, takes the time."""


def takes_kernels(kind: str, vectors: Tensor, weight: Tensor, *, steps: Size, batch: Size) -> bool:
    """Return whether vectors take `project` and `recur`, not PyTorch's operator.

    They do where the compiled kernels are faster; where products are rounded by us, which the
    operator would not do; and where a program is made that must serve any length.

    Args:
        kind: `elman`, `gru` or `lstm`.
        vectors: What is fed.
        weight: Recurrent weights of a layer.
        steps: Time steps.
        batch: Sequences.
    """
    if isinstance(steps, Tensor) or isinstance(batch, Tensor) or is_transformed(vectors, weight):
        return False
    if vectors.device.type == "cpu":
        if torch.is_autocast_enabled("cpu"):
            return False
        if vectors.dtype == torch.float32 and rounds_products(vectors.device):
            return True
    wanted = torch.compiler.is_compiling() or is_faster(
        kind, weight.shape[1], steps, batch, trains=torch.is_grad_enabled()
    )
    return wanted and kernels_fit(vectors, weight, steps=steps, batch=batch)


def is_faster(kind: str, width: int, steps: int, batch: int, *, trains: bool) -> bool:
    """Return whether our kernels beat PyTorch's operator at this shape.

    For the LSTM they do not: PyTorch's is oneDNN's. `benchmarks/layers.py` measures it.
    """
    if kind == "lstm" or steps < LEAST_STEPS[kind] or 64 * steps * batch < width:
        return False
    if kind == "elman" and batch >= MANY and width > NARROW:
        return False
    if batch * width > LARGEST_STEP or (batch >= MANY and steps * batch * width >= LARGEST):
        return False
    return trains or (batch < MANY <= steps and width <= WIDEST)
