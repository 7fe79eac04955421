"""LSTM and GRU on a GPU with PyTorch's fused cells: one kernel for what is pointwise in a step.

They are what `torch.nn.LSTMCell` and `torch.nn.GRUCell` call on CUDA; other devices have none.
Their gates are in our order. Each allocates its results, so steps are stacked when all are done,
and takes tensors of one type; a workspace holds what its backward pass needs.

Source: PyTorch, aten/src/ATen/native/cuda/RNN.cu.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .scanning import CELLS, add_product, factors_of, first_order, recurrent_gradient


def _cells(kind: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    forward, backward = (getattr(torch.ops.aten, name).default for name in CELLS[kind])
    return forward, backward


def _as_given(device: torch.device) -> AbstractContextManager[Any]:
    """Keep autocast from rounding what goes into a fused cell: it lists them among the products."""
    return torch.autocast(device.type, enabled=False)


def _steps_of(grad_outputs: Tensor) -> tuple[Tensor, ...]:
    """Return a copy, step by step, which the recurrence's own gradients are added to."""
    return grad_outputs.clone(memory_format=torch.contiguous_format).unbind(0)


class FusedLSTM(torch.autograd.Function):
    """The recurrence and its adjoint; weight gradients in one product over all steps."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Run all steps; return the hidden states and the last cell."""
        factor, (run, _) = factors_of(weight), _cells("lstm")
        transposed = factor(weight.mT)
        states, cells, workspaces = [hidden], [cell], []
        with _as_given(gates.device):
            for given in gates.to(hidden.dtype).unbind(0):
                recurrent = (factor(states[-1]) @ transposed).to(hidden.dtype)
                state, memory, workspace = run(given, recurrent, cells[-1])
                states.append(state)
                cells.append(memory)
                workspaces.append(workspace)
        outputs = torch.stack(states[1:])
        ctx.save_for_backward(outputs, weight, hidden, *cells, *workspaces)
        ctx.factor = factor
        return outputs, cells[-1]

    @staticmethod
    @first_order
    def backward(
        ctx: Any, grad_outputs: Tensor, grad_memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of what `forward` was given."""
        outputs, weight, hidden, *saved = ctx.saved_tensors
        cells, workspaces = saved[: len(outputs) + 1], saved[len(outputs) + 1 :]
        factor, (_, run) = ctx.factor, _cells("lstm")
        recurrent = factor(weight)
        steps, inners, grad_cell = _steps_of(grad_outputs), [], grad_memory
        for step in range(len(outputs) - 1, -1, -1):
            memories = cells[step : step + 2]
            inner, grad_cell, _ = run(steps[step], grad_cell, *memories, workspaces[step], False)
            inners.append(inner)
            grad = steps[step - 1] if step else torch.zeros_like(hidden)
            add_product(grad, factor(inner), recurrent, grad)
        grad_gates = torch.stack(inners[::-1])
        del inners
        grad_weight = recurrent_gradient(grad_gates, hidden, outputs, factor)
        return grad_gates, grad_weight, grad, grad_cell


class FusedGRU(torch.autograd.Function):
    """The recurrence and its adjoint; weight gradients in one product over all steps."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias_hn: Tensor, hidden: Tensor) -> Tensor:
        """Run all steps; return the hidden states."""
        factor, (run, _) = factors_of(weight), _cells("gru")
        transposed = factor(weight.mT)
        # The cell takes both biases or none; all but that of the new gate are in the inputs.
        shift = F.pad(bias_hn, (2 * hidden.shape[-1], 0))
        nothing = torch.zeros_like(shift)
        states, workspaces = [hidden], []
        with _as_given(gates.device):
            for given in gates.to(hidden.dtype).unbind(0):
                recurrent = (factor(states[-1]) @ transposed).to(hidden.dtype)
                state, workspace = run(given, recurrent, states[-1], nothing, shift)
                states.append(state)
                workspaces.append(workspace)
        outputs = torch.stack(states[1:])
        ctx.save_for_backward(outputs, weight, hidden, *workspaces)
        ctx.factor = factor
        return outputs

    @staticmethod
    @first_order
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of what `forward` was given."""
        outputs, weight, hidden, *workspaces = ctx.saved_tensors
        factor, (_, run) = ctx.factor, _cells("gru")
        recurrent = factor(weight)
        steps, inners, givens = _steps_of(grad_outputs), [], []
        for step in range(len(outputs) - 1, -1, -1):
            given, inner, grad, _, _ = run(steps[step], workspaces[step], False)
            givens.append(given)
            inners.append(inner)
            if step:
                grad = steps[step - 1].add_(grad)
            add_product(grad, factor(inner), recurrent, grad)
        # They differ in the new gate alone, whose reset stands before its recurrent product.
        grad_inner = torch.stack(inners[::-1])
        del inners
        grad_weight = recurrent_gradient(grad_inner, hidden, outputs, factor)
        grad_bias_hn = grad_inner[..., 2 * hidden.shape[-1] :].sum((0, 1))
        return torch.stack(givens[::-1]), grad_weight, grad_bias_hn, grad
