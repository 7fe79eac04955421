"""Gated recurrent unit.

h_t = (1 − z) ⊙ n + z ⊙ h_{t−1}, n = tanh(W x + r ⊙ (U h_{t−1} + b)).

Source: Cho et al. (2014); gates in the order reset, update, new, the reset applied after the
recurrent product, parametrised as `torch.nn.GRU`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .recurrent import LayerFactors, RecurrentCore
from .scanning import add_product, factors_of, recurrent_gradient, refuse_second


class GRU(RecurrentCore):
    """GRU, interchangeable with `torch.nn.GRU`.

    On vectors it runs compiled kernels for 8 steps and more with gradients, or for 64 and more
    without (of fewer than 64 sequences, states up to 256 wide), while batch times hidden size is at
    most 8,192 and the states fit the caches; else PyTorch's operator and some microseconds of
    checks, up to a tenth of a call of one step.

    Examples:
        >>> outputs, state = GRU(4, 8)(torch.zeros(5, 2, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((5, 2, 8), (1, 2, 8))
    """

    num_gates = 3
    reference = nn.GRU
    mode = "GRU"
    kernel = "gru"

    def input_bias(self, layer: int) -> Tensor | None:
        """Return what stands before the reset."""
        if not self.bias:
            return None
        # The new gate's recurrent bias stands inside the reset product: it stays behind.
        early = self.bias_of("hh", layer)[: 2 * self.hidden_size]
        return self.bias_of("ih", layer) + F.pad(early, (0, self.hidden_size))

    def bias_hn(self, layer: int) -> Tensor:
        """Return the new gate's recurrent bias."""
        if not self.bias:
            return self.weight("hh", layer).new_zeros(self.hidden_size)
        return self.bias_of("hh", layer)[2 * self.hidden_size :]

    def scan(
        self, layer: int, gates: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run one layer with the hand-written backward pass."""
        weight, bias_hn = self.weight("hh", layer), self.bias_hn(layer)
        outputs = _Scan.apply(gates, weight, bias_hn, *state)  # type: ignore[no-untyped-call]
        return outputs, (outputs[-1],)

    def factors(self, layer: int, gates: Tensor, before: Tensor, source: int) -> LayerFactors:
        """Return one layer's factors of the Jacobian."""
        gates, before = gates[source:], before[source:]
        inner = F.linear(before, self.weight("hh", layer)).unflatten(2, (3, -1))
        early = gates.unflatten(2, (3, -1))
        raw = inner[:, :, 2] + self.bias_hn(layer)
        reset, keep = torch.sigmoid(inner[:, :, :2] + early[:, :, :2]).unbind(2)
        new = torch.tanh(early[:, :, 2] + reset * raw)
        fresh = (1 - keep) * (1 - new * new)
        shut = fresh * raw * reset * (1 - reset)
        hold = keep * (1 - keep) * (before - new)
        return LayerFactors(
            torch.stack([shut, hold, fresh * reset], dim=2),
            torch.stack([shut, hold, fresh], dim=2),
            ((0, 1, 2),),
            keep=keep,
        )


class _Scan(torch.autograd.Function):
    """The recurrence and its adjoint; weight gradients in one product over all steps."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias_hn: Tensor, hidden: Tensor) -> Tensor:
        factor = factors_of(weight)
        gates = gates.to(hidden.dtype)
        size = hidden.shape[-1]
        transposed = factor(weight.mT)
        # The recurrent bias of the new gate rides on the product: zero for the other two.
        shift = F.pad(bias_hn, (2 * size, 0)).unsqueeze(-2)
        active = torch.empty_like(gates)
        raw = gates.new_empty(gates.shape[0], *hidden.shape)
        outputs = torch.empty_like(raw)
        # One view per step and block, made all at once: indexing in the loop costs more.
        blocks = active.unbind(0)
        resets, keeps, news = (
            part.unbind(0) for part in active.unflatten(-1, (3, size)).unbind(-2)
        )
        boths = active[..., : 2 * size].unbind(0)
        early, late_inputs = gates[..., : 2 * size].unbind(0), gates[..., 2 * size :].unbind(0)
        raws, outs = raw.unbind(0), outputs.unbind(0)
        previous = hidden
        for step in range(gates.shape[0]):
            add_product(shift, factor(previous), transposed, blocks[step])
            new = news[step]
            raws[step].copy_(new)
            boths[step].add_(early[step]).sigmoid_()
            torch.addcmul(late_inputs[step], resets[step], raws[step], out=new).tanh_()
            previous = torch.lerp(new, previous, keeps[step], out=outs[step])
        ctx.save_for_backward(active, raw, outputs, weight, hidden)
        ctx.factor = factor
        return outputs

    @staticmethod
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        refuse_second(grad_outputs)
        active, raw, outputs, weight, hidden = ctx.saved_tensors
        factor = ctx.factor
        recurrent = factor(weight)
        size = hidden.shape[-1]
        reset, keep, new = active.unflatten(-1, (3, size)).unbind(-2)
        # Everything that does not wait for the adjoint is computed for all steps at once.
        fresh = (1 - keep) * (1 - new * new)
        slopes = torch.empty_like(active).unflatten(-1, (3, size))
        torch.mul(fresh * raw, reset * (1 - reset), out=slopes[..., 0, :])
        torch.mul(keep, 1 - keep, out=slopes[..., 1, :])
        slopes[0, ..., 1, :] *= hidden - new[0]
        slopes[1:, ..., 1, :] *= outputs[:-1] - new[1:]
        torch.mul(fresh, reset, out=slopes[..., 2, :])
        # The adjoint of the recurrent product; it differs from the gates' in the new gate alone.
        grad_inner = torch.empty_like(active)
        grads = grad_outputs.clone()
        blocks = grad_inner.unflatten(-1, (3, size)).unbind(0)
        inners, steps = grad_inner.unbind(0), grads.unbind(0)
        wide = grads.unsqueeze(-2).unbind(0)
        slope, leak = slopes.unbind(0), keep.unbind(0)
        for step in range(len(active) - 1, -1, -1):
            torch.mul(wide[step], slope[step], out=blocks[step])
            grad = steps[step - 1] if step else torch.zeros_like(hidden)
            grad.addcmul_(steps[step], leak[step])
            add_product(grad, factor(inners[step]), recurrent, grad)
        grad_weight = recurrent_gradient(grad_inner, hidden, outputs, factor)
        grad_bias_hn = grad_inner[..., 2 * size :].sum((0, -2))
        grad_gates = grad_inner
        torch.mul(grads, fresh, out=grad_gates[..., 2 * size :])
        return grad_gates, grad_weight, grad_bias_hn, grad
