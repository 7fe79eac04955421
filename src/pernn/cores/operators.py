"""PyTorch's recurrent operators for dense vectors, unless our kernels are faster."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pernn.errors import ConfigError
from pernn.kernels import rounds_products

from .scanning import kernels_fit

Size = int | Tensor
"""A tensor where `torch.jit.trace` is at work."""
OPERATORS = {"elman": "rnn_tanh", "gru": "gru", "lstm": "lstm"}
"""Kind of a core → what computes the same in `torch._VF`, where `torch.nn` finds it too."""
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
    if isinstance(steps, Tensor) or isinstance(batch, Tensor):
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


def run_operator(
    kind: str,
    inputs: Tensor,
    state: tuple[Tensor, ...],
    weights: Sequence[Tensor],
    *,
    num_layers: int,
    has_biases: bool,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run all layers by one operator of PyTorch.

    Args:
        kind: `elman`, `gru` or `lstm`.
        inputs: Vectors, batch first; those of a packed sequence if `batch_sizes` is given.
        state: Of all layers, one tensor, or two for an LSTM.
        weights: Layer by layer, as in `all_weights`.
        num_layers: Number of layers.
        has_biases: Whether there are biases among the weights.
        batch_sizes: Sequences that go on at each step, of a packed sequence.

    Returns:
        The outputs, and the final state.

    Raises:
        ConfigError: If it is called within `torch.func.vmap`.
    """
    is_batched = torch._C._functorch.is_batchedtensor
    if not torch.compiler.is_compiling() and any(map(is_batched, (inputs, *weights))):
        raise ConfigError(
            "PyTorch's recurrent operators have no rule for torch.func.vmap (nor for what is built "
            "on it, as jacrev): give the layer one batch of all sequences"
        )
    operator: Any = getattr(torch._VF, OPERATORS[kind])
    given = state if kind == "lstm" else state[0]
    # Without dropout, `train` says whether there will be a backward pass, and nothing else; a trace
    # keeps it, and is checked without gradients.
    trains = torch.is_grad_enabled() or torch._C._get_tracing_state() is not None
    options = (has_biases, num_layers, 0.0, trains, False)
    if batch_sizes is None:
        outputs, *final = operator(inputs, given, weights, *options, True)
    else:
        outputs, *final = operator(inputs, batch_sizes, given, weights, *options)
    return outputs, tuple(final)
