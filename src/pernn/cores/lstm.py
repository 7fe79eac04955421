"""Long short-term memory: c_t = f ⊙ c_{t−1} + i ⊙ g, h_t = o ⊙ tanh(c_t).

Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000);
gates in the order input, forget, cell, output, parametrised as `torch.nn.LSTM`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recurrent import LayerFactors, RecurrentCore
from .scanning import add_product, factors_of, recurrent_gradient, refuse_second


class LSTM(RecurrentCore):
    """LSTM, interchangeable with `torch.nn.LSTM`.

    On vectors it runs PyTorch's operator (oneDNN's), which our kernels do not beat, and adds
    some microseconds of checks in Python, up to a tenth of a call of one step. The kernels run
    whole networks on tokens, whose projection is folded.

    Examples:
        >>> outputs, (hidden, cell) = LSTM(4, 8)(torch.zeros(5, 2, 4))
        >>> tuple(outputs.shape), tuple(cell.shape)
        ((5, 2, 8), (1, 2, 8))
    """

    num_gates = 4
    num_states = 2
    reference = nn.LSTM
    mode = "LSTM"
    kernel = "lstm"

    def scan(
        self, layer: int, gates: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run one layer with the hand-written backward pass."""
        weight = self.weight("hh", layer)
        outputs, cell = _Scan.apply(gates, weight, *state)  # type: ignore[no-untyped-call]
        return outputs, (outputs[-1], cell)

    def factors(self, layer: int, gates: Tensor, before: Tensor, source: int) -> LayerFactors:
        """Return one layer's factors of the Jacobian."""
        pre = (gates + F.linear(before, self.weight("hh", layer))).unflatten(2, (4, -1))
        entry, forget, exit_ = (torch.sigmoid(pre[:, :, gate]) for gate in (0, 1, 3))
        update = torch.tanh(pre[:, :, 2])
        cells = torch.empty_like(before)
        cell = torch.zeros_like(before[0])
        entered = entry * update
        for step in range(len(cells)):
            cell = torch.addcmul(entered[step], forget[step], cell, out=cells[step])
        old = torch.cat([torch.zeros_like(cells[:1]), cells[:-1]])[source:]
        entry, forget, exit_, update, cells = (
            part[source:] for part in (entry, forget, exit_, update, cells)
        )
        flat = torch.tanh(cells)
        slopes = torch.stack(
            [
                update * entry * (1 - entry),
                old * forget * (1 - forget),
                entry * (1 - update * update),
                flat * exit_ * (1 - exit_),
            ],
            dim=2,
        )
        leak = exit_ * (1 - flat * flat)
        return LayerFactors(slopes, slopes, ((3,), (0, 1, 2)), leak=leak, forget=forget)


class _Scan(torch.autograd.Function):
    """The recurrence and its adjoint; weight gradients in one product over all steps."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        factor = factors_of(weight)
        gates = gates.to(hidden.dtype)
        size = hidden.shape[-1]
        transposed = factor(weight.mT)
        active = torch.empty_like(gates)
        cells = gates.new_empty(gates.shape[0], *cell.shape)
        squashed, outputs = torch.empty_like(cells), torch.empty_like(cells)
        # One view per step and block, made all at once: indexing in the loop costs more.
        blocks, inputs = active.unbind(0), gates.unbind(0)
        entries, forgets, updates, exits = (
            part.unbind(0) for part in active.unflatten(-1, (4, size)).unbind(-2)
        )
        early = active[..., : 2 * size].unbind(0)
        memories, flats, outs = cells.unbind(0), squashed.unbind(0), outputs.unbind(0)
        previous, memory = hidden, cell
        for step in range(gates.shape[0]):
            add_product(inputs[step], factor(previous), transposed, blocks[step])
            early[step].sigmoid_()
            update, exit_ = updates[step].tanh_(), exits[step].sigmoid_()
            kept = torch.mul(forgets[step], memory, out=memories[step])
            memory = kept.addcmul_(entries[step], update)
            flat = torch.tanh(memory, out=flats[step])
            previous = torch.mul(exit_, flat, out=outs[step])
        ctx.save_for_backward(active, cells, squashed, outputs, weight, hidden, cell)
        ctx.factor = factor
        return outputs, memory.clone()

    @staticmethod
    def backward(
        ctx: Any, grad_outputs: Tensor, grad_memory: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        refuse_second(grad_outputs, grad_memory)
        active, cells, squashed, outputs, weight, hidden, cell = ctx.saved_tensors
        factor = ctx.factor
        recurrent = factor(weight)
        size = hidden.shape[-1]
        entry, forget, update, exit_ = active.unflatten(-1, (4, size)).unbind(-2)
        # Everything that does not wait for the adjoint is computed for all steps at once.
        # A sigmoid's slope is a − a², a tanh's 1 − a².
        whole = torch.addcmul(active, active, active, value=-1)
        slopes = whole.unflatten(-1, (4, size))
        slopes[..., 0, :] *= update
        slopes[0, ..., 1, :] *= cell
        slopes[1:, ..., 1, :] *= cells[:-1]
        torch.addcmul(entry, entry * update, update, value=-1, out=slopes[..., 2, :])
        slopes[..., 3, :] *= squashed
        leak = torch.addcmul(exit_, outputs, squashed, value=-1)
        grad_gates = torch.empty_like(active)
        grad_cell = grad_memory.clone()
        grads = grad_outputs.clone()
        steps, inners = grads.unbind(0), grad_gates.unbind(0)
        early, late = (
            grad_gates.unflatten(-1, (4, size))[..., part, :].unbind(0) for part in (slice(0, 3), 3)
        )
        early_slopes, late_slopes = slopes[..., :3, :].unbind(0), slopes[..., 3, :].unbind(0)
        leaks, forgets = leak.unbind(0), forget.unbind(0)
        wide = grad_cell.unsqueeze(-2)
        for step in range(len(active) - 1, -1, -1):
            grad = steps[step]
            grad_cell.addcmul_(grad, leaks[step])
            torch.mul(wide, early_slopes[step], out=early[step])
            torch.mul(grad, late_slopes[step], out=late[step])
            grad_cell.mul_(forgets[step])
            previous = steps[step - 1] if step else torch.zeros_like(hidden)
            add_product(previous, factor(inners[step]), recurrent, previous)
        grad_weight = recurrent_gradient(grad_gates, hidden, outputs, factor)
        return grad_gates, grad_weight, previous, grad_cell
