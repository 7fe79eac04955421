"""Compiled kernels of Elman, GRU and LSTM, and when they run."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from pernn.errors import ConfigError
from pernn.kernels import (
    autocast_dtype,
    find_kernels,
    is_batched,
    is_transformed,
    product,
    rounded,
    rounds_products,
)

from .core import Projected

PANEL_UNITS = {"elman": (64, 32, 16), "gru": (16,), "lstm": (16,)}
"""Units whose gates are computed together, the best that divides the width: measured."""
COLUMNS = (64, 32, 16)
"""Columns of a panel on the way back."""
LEAST_STEPS = 2
"""For a single step, rearranging the weights costs more than it saves."""

Size = int | Tensor
"""A tensor where `torch.jit.trace` is at work."""
FASTER_STEPS = {"elman": 16, "gru": 8}
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


def refuse_second(*arriving: Tensor | None) -> None:
    """Refuse second derivatives and batched gradients of a hand-written backward pass.

    PyTorch's `once_differentiable` lets a second derivative through in silence, without the
    recurrence's share, whenever the incoming gradient is a constant.
    """
    if torch.is_grad_enabled():
        raise ConfigError(
            "the cores of pernn have no second derivative (create_graph=True): use core.to_torch()"
        )
    if is_batched(*arriving):
        raise ConfigError(
            "the cores of pernn take one gradient at a time (no is_grads_batched=True nor "
            "vectorize=True): use core.to_torch()"
        )


def factors_of(weight: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the rounding of factors of recurrent products here."""
    device = weight.device
    if device.type == "cpu":
        rounds = weight.dtype == torch.float32 and rounds_products(device)
        return rounded if rounds else lambda values: values
    dtype = autocast_dtype(device.type) or weight.dtype
    return lambda values: values.to(dtype)


def add_product(base: Tensor, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return `base + left @ right` in the type of `base`."""
    if right.dtype == base.dtype:
        return torch.addmm(base, left, right, out=out)
    return torch.add(base, left @ right, out=out)


def recurrent_gradient(
    grad_gates: Tensor, hidden: Tensor, outputs: Tensor, factor: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return Σ_t δ_t h_{t−1}ᵀ as one product."""
    later = factor(grad_gates[1:].flatten(0, 1)).t() @ factor(outputs[:-1].flatten(0, 1))
    first = factor(grad_gates[0]).t() @ factor(hidden)
    return later.to(hidden.dtype) + first.to(hidden.dtype)


def kernels_fit(inputs: Tensor, weight: Tensor, *, steps: int, batch: int) -> bool:
    """Return whether kernels can run a layer on such inputs."""
    fits = (
        inputs.device.type == "cpu"
        and inputs.dtype == torch.float32
        and weight.dtype == torch.float32
        and weight.shape[1] % 16 == 0
        and steps >= LEAST_STEPS
        and batch > 0
    )
    kernels = find_kernels() if fits else None
    return kernels is not None and (kernels.rounds or not rounds_products(inputs.device))


def takes_kernels(kind: str, vectors: Tensor, weight: Tensor, *, steps: Size, batch: Size) -> bool:
    """Return whether vectors take `project` and `recur`, not PyTorch's operator.

    They do where the compiled kernels are faster; where products are rounded by us, which the
    operator would not do; and where a program is made that must serve any length.
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
    if kind == "lstm" or steps < FASTER_STEPS[kind] or 64 * steps * batch < width:
        return False
    if kind == "elman" and batch >= MANY and width > NARROW:
        return False
    if batch * width > LARGEST_STEP or (batch >= MANY and steps * batch * width >= LARGEST):
        return False
    return trains or (batch < MANY <= steps and width <= WIDEST)


def scan(
    kind: str,
    inputs: Projected,
    weight: Tensor,
    bias_hn: Tensor | None,
    state: tuple[Tensor, ...] | None,
    num_outputs: int,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return a layer's last outputs, time first, and its final state."""
    hidden, cell = (*(state or ()), None, None)[:2]
    parts = inputs.tokens, inputs.table, inputs.encodings, weight, bias_hn, hidden, cell
    outputs, memory = _Scan.apply(kind, inputs, num_outputs, *parts)  # type: ignore[no-untyped-call]
    return outputs, (outputs[-1], memory) if kind == "lstm" else (outputs[-1],)


class _Scan(torch.autograd.Function):
    """The whole recurrence and its adjoint; the weights' gradient is one product over all steps."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: str,
        shape: Projected,
        num_outputs: int,
        tokens: Tensor | None,
        table: Tensor,
        encodings: Tensor | None,
        weight: Tensor,
        bias_hn: Tensor | None,
        hidden: Tensor | None,
        cell: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        dtype = torch.bfloat16 if rounds_products(table.device) else table.dtype
        size = weight.shape[1]
        units = next(count for count in PANEL_UNITS[kind] if size % count == 0)
        tokens = None if tokens is None else tokens.long()
        tokens, encodings, bias_hn, *states = (
            None if part is None else part.contiguous()
            for part in (tokens, encodings, bias_hn, hidden, cell)
        )
        sizes = shape.batch, shape.num_steps, shape.input_time, shape.query_row
        panels = _panels_forward(weight.to(dtype), units)
        outputs, cells, saved = torch.ops.pernn.scan_forward(
            kind, units, *sizes, table.contiguous(), encodings, tokens, panels, bias_hn, *states
        )
        # Not the inputs themselves, which would outlive what a checkpoint of PyTorch's frees.
        ctx.shape = kind, units, shape.input_time, shape.query_row
        ctx.dtype, ctx.has_queries = dtype, shape.num_queries > 0
        ctx.has_encodings = encodings is not None
        ctx.save_for_backward(table, tokens, weight, bias_hn, *states, outputs, cells, saved)
        ctx.set_materialize_grads(False)
        memory = cells[-1].clone() if kind == "lstm" else cells
        return outputs[shape.num_steps - num_outputs :], memory

    @staticmethod
    def backward(
        ctx: Any, grad_outputs: Tensor | None, grad_cell: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        refuse_second(grad_outputs, grad_cell)
        table, tokens, weight, bias_hn, hidden, cell, outputs, cells, saved = ctx.saved_tensors
        if grad_outputs is None:
            grad_outputs = outputs.new_zeros(1, *outputs.shape[1:])
        arriving = grad_outputs.contiguous(), None if grad_cell is None else grad_cell.contiguous()
        kept = table, outputs, cells, saved, tokens, _panels_backward(weight.to(ctx.dtype))
        inner, grad_table, grad_encodings, grad_bias_hn, grad_hidden, grad_first_cell = (
            torch.ops.pernn.scan_backward(*ctx.shape, *arriving, *kept, hidden, cell)
        )
        if ctx.has_queries:
            *_, input_time, query_row = ctx.shape
            grad_table[query_row] += grad_encodings[input_time:].sum(0)
        rounds = ctx.dtype == torch.bfloat16
        return (
            *(None,) * 4,
            grad_table,
            grad_encodings if ctx.has_encodings else None,
            _weight_gradient(inner, outputs, hidden, rounds=rounds),
            None if bias_hn is None else grad_bias_hn,
            None if hidden is None else grad_hidden,
            None if cell is None else grad_first_cell,
        )


def _weight_gradient(
    inner: Tensor, before: Tensor, hidden: Tensor | None, *, rounds: bool
) -> Tensor:
    """Return Σ_t δ_t h_{t−1}ᵀ as one product over all steps."""
    left, right = inner[1:].flatten(0, 1), before[:-1].flatten(0, 1)
    total = product(left.t(), right, rounds=rounds)
    if hidden is None:
        return total
    return product(inner[0].t(), hidden, total, add=True, rounds=rounds)


def _panels_forward(weight: Tensor, units: int) -> Tensor:
    """Pack Uᵀ into panels, all gates of some units side by side."""
    size = weight.shape[1]
    panels = weight.view(-1, size // units, units, size).permute(1, 3, 0, 2)
    return _interleave(panels.reshape(size // units, size, -1))


def _panels_backward(weight: Tensor) -> Tensor:
    """Pack U into panels of columns."""
    rows, size = weight.shape
    columns = next(count for count in COLUMNS if size % count == 0)
    return _interleave(weight.view(rows, -1, columns).transpose(0, 1))


def _interleave(panels: Tensor) -> Tensor:
    """Pack rows as the products take them: bfloat16 two by two."""
    if panels.dtype != torch.bfloat16:
        return panels.contiguous()
    return cast(Tensor, panels.unflatten(1, (-1, 2)).transpose(2, 3).contiguous())
