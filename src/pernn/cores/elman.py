"""Elman's simple recurrent network: h_t = tanh(W x_t + U h_{t−1} + b).

Source: Elman (1990), "Finding structure in time"; parametrised as `torch.nn.RNN`.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.errors import ConfigError

from .recurrent import LayerFactors, RecurrentCore
from .scanning import add_product, factors_of, recurrent_gradient, refuse_second


class Elman(RecurrentCore):
    """Elman network with tanh units, interchangeable with `torch.nn.RNN`.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one hidden state.
        num_layers: Number of stacked layers.
        nonlinearity: Must be `tanh`; it stands where `torch.nn.RNN` has it.
        rest: `bias`, `batch_first` and so on, as in `RecurrentCore`.
        options: The same by name.

    Raises:
        ConfigError: If another nonlinearity is asked for, or as `RecurrentCore`.

    On vectors it runs compiled kernels for 16 steps and more with gradients, or for 64 and more
    without (of fewer than 64 sequences, states up to 256 wide), while batch times hidden size is at
    most 8,192 (hidden size at most 64 from 64 sequences on) and the states fit the caches; else
    PyTorch's operator and some microseconds of checks, up to a tenth of a call of one step.

    Examples:
        >>> outputs, state = Elman(4, 8)(torch.zeros(5, 2, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((5, 2, 8), (1, 2, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *rest: Any,
        **options: Any,
    ) -> None:
        if nonlinearity != "tanh":
            raise ConfigError(
                f"Elman: nonlinearity={nonlinearity!r} is not supported, only 'tanh'; "
                "PositionEncoded wraps torch.nn.RNN, which has 'relu'"
            )
        super().__init__(input_size, hidden_size, num_layers, *rest, **options)

    nonlinearity = "tanh"
    num_gates = 1
    reference = nn.RNN
    mode = "RNN_TANH"
    kernel = "elman"

    def scan(
        self, layer: int, gates: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run one layer with the hand-written backward pass."""
        weight = self.weight("hh", layer)
        outputs = _Scan.apply(gates, weight, *state)  # type: ignore[no-untyped-call]
        return outputs, (outputs[-1],)

    def factors(self, layer: int, gates: Tensor, before: Tensor, source: int) -> LayerFactors:
        """Return one layer's factors of the Jacobian."""
        gates, before = gates[source:], before[source:]
        outputs = torch.tanh(gates + F.linear(before, self.weight("hh", layer)))
        slopes = (1 - outputs * outputs).unsqueeze(2)
        return LayerFactors(slopes, slopes, ((0,),))


class _Scan(torch.autograd.Function):
    """The recurrence and its adjoint; weight gradients in one product over all steps."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, hidden: Tensor) -> Tensor:
        factor = factors_of(weight)
        gates = gates.to(hidden.dtype)
        transposed = factor(weight.mT)
        outputs = torch.empty_like(gates)
        outs, inputs = outputs.unbind(0), gates.unbind(0)
        previous = hidden
        for step in range(gates.shape[0]):
            previous = add_product(inputs[step], factor(previous), transposed, outs[step]).tanh_()
        ctx.save_for_backward(outputs, hidden, weight)
        ctx.factor = factor
        return outputs

    @staticmethod
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        refuse_second(grad_outputs)
        outputs, hidden, weight = ctx.saved_tensors
        factor = ctx.factor
        recurrent = factor(weight)
        slopes = (1 - outputs * outputs).unbind(0)
        grad_gates = torch.empty_like(outputs)
        grads = grad_outputs.clone()
        steps, inners = grads.unbind(0), grad_gates.unbind(0)
        for step in range(outputs.shape[0] - 1, -1, -1):
            torch.mul(steps[step], slopes[step], out=inners[step])
            grad = steps[step - 1] if step else torch.zeros_like(hidden)
            add_product(grad, factor(inners[step]), recurrent, grad)
        return grad_gates, recurrent_gradient(grad_gates, hidden, outputs, factor), grad
