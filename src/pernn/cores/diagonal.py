"""Recurrences whose factors do not see the state: s_{t+1} = f_t ⊙ s_t + x_t."""

import math
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.kernels import is_transformed, linear

from .core import Linear
from .stacked import Gates, Layer, Outputs, Stacked

# `torch.library.custom_op` would load PyTorch's compiler, which takes seconds.
LIBRARY = torch.library.Library("pernn", "FRAGMENT")
LIBRARY.define("linear_scan(Tensor factors, Tensor inputs, Tensor initial, bool reverse) -> Tensor")


def linear_scan(
    factors: Tensor, inputs: Tensor, initial: Tensor, *, reverse: bool = False
) -> Tensor:
    """Run the recurrence over the first axis, of real or complex numbers.

    A compiler sees one operation, of any number of steps.

    Args:
        factors: f, of the inputs' shape; expanded where all steps have the same.
        inputs: x, `(time, ...)`.
        initial: The state before the first step, or after the last in reverse, `(...)`.
        reverse: Whether to go from the last step to the first, s_t = f_t ⊙ s_{t+1} + x_t.

    Returns:
        All states, the initial one among them, `(time + 1, ...)`.
    """
    if is_transformed(factors, inputs, initial):
        return _step_by_step(factors, inputs, initial, reverse=reverse)
    return cast(Tensor, torch.ops.pernn.linear_scan(factors, inputs, initial, reverse))


def _step_by_step(factors: Tensor, inputs: Tensor, initial: Tensor, *, reverse: bool) -> Tensor:
    """Run the recurrence by operations that `torch.func` can transform."""
    states, order = [initial], range(len(inputs))
    for step in reversed(order) if reverse else order:
        states.append(torch.addcmul(inputs[step], factors[step], states[-1]))
    return torch.stack(states[::-1] if reverse else states)


def _run(factors: Tensor, inputs: Tensor, initial: Tensor, reverse: bool) -> Tensor:  # noqa: FBT001
    states = inputs.new_empty(len(inputs) + 1, *inputs.shape[1:])
    after = states[:-1] if reverse else states[1:]
    previous = states[-1 if reverse else 0].copy_(initial)
    steps = [part.unbind(0) for part in (factors, inputs, after)]
    if reverse:
        steps = [part[::-1] for part in steps]
    for factor, entry, state in zip(*steps, strict=True):
        previous = torch.addcmul(entry, factor, previous, out=state)
    return states


def _shape(_: Tensor, inputs: Tensor, *__: Tensor | bool) -> Tensor:
    return inputs.new_empty(inputs.shape[0] + 1, *inputs.shape[1:])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    factors, _, _, ctx.reverse = inputs
    ctx.save_for_backward(factors, output)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Go back, by a scan as well: g_t = conj(f_t) ⊙ g_{t+1} + what arrives at t."""
    factors, states = ctx.saved_tensors
    first, rest = (0, slice(1, None)) if ctx.reverse else (-1, slice(None, -1))
    back = linear_scan(factors.conj(), grad[rest], grad[first], reverse=not ctx.reverse)
    entries, before = (back[:-1], states[1:]) if ctx.reverse else (back[1:], states[:-1])
    return entries * before.conj(), entries, back[-1 - first], None


LIBRARY.impl("linear_scan", _run, "CompositeExplicitAutograd")
torch.library.register_fake("pernn::linear_scan", _shape, lib=LIBRARY)
torch.library.register_autograd(
    "pernn::linear_scan", _differentiate, setup_context=_keep, lib=LIBRARY
)


class MinGRULayer(Layer):
    """One layer of minGRU."""

    num_gates: ClassVar[int] = 2

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, self.num_gates * hidden_size, hidden_size)

    def forward(self, gates: Gates, state: Tensor, num_outputs: int) -> tuple[Outputs, Tensor]:
        """Return the last steps' states, and the final one."""
        keep, entries = self.coefficients(gates)
        states = linear_scan(keep, entries, state)
        return states[states.shape[0] - num_outputs :], states[-1]

    def coefficients(self, gates: Gates) -> tuple[Tensor, Tensor]:
        """Return what the state is multiplied with, and what enters it."""
        update, candidate = gates.chunk(2, dim=2)
        return torch.sigmoid(-update), torch.sigmoid(update) * candidate


class MinGRU(Stacked):
    """GRU whose update gate and candidate depend on the input alone.

        z_t = σ(W_z x_t + b_z)    h̃_t = W_h x_t + b_h    h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t

    Its output is its state, `(layers, batch, hidden)`.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one hidden state.
        num_layers: Number of stacked layers.
        options: `batch_first`, true by default, `device`, `dtype` and `generator`, as in `S4D`.

    Raises:
        ConfigError: If a size is not positive, or dropout or a second direction is asked for.

    Source: Feng, Tung, Ahmed, Bengio and Hajimirsadeghi (2024), "Were RNNs all we needed?",
    section 3.1.

    Differs: From the authors' version in logarithms, which keeps candidates positive, in that
        candidates have either sign, as in their equations.

    Examples:
        >>> outputs, state = MinGRU(4, 8)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 8))
    """

    layer_class = MinGRULayer


class MinLSTMLayer(MinGRULayer):
    """One layer of minLSTM."""

    num_gates: ClassVar[int] = 3

    def coefficients(self, gates: Gates) -> tuple[Tensor, Tensor]:
        """Return what the state is multiplied with, and what enters it."""
        forget, enter, candidate = gates.chunk(3, dim=2)
        # f / (f + i) = σ(log f − log i), which is exact where both are tiny.
        kept = F.logsigmoid(forget) - F.logsigmoid(enter)
        return torch.sigmoid(kept), torch.sigmoid(-kept) * candidate


class MinLSTM(Stacked):
    """LSTM whose gates depend on the input alone and sum to one.

        f_t = σ(W_f x_t + b_f)    i_t = σ(W_i x_t + b_i)    h̃_t = W_h x_t + b_h
        h_t = f_t / (f_t + i_t) ⊙ h_{t−1} + i_t / (f_t + i_t) ⊙ h̃_t

    Its output is its state, `(layers, batch, hidden)`: there is no cell and no output gate. The
    arguments are those of `MinGRU`, and it differs from the authors' version likewise.

    Source: Feng et al. (2024), "Were RNNs all we needed?", section 3.2.

    Examples:
        >>> outputs, state = MinLSTM(4, 8)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 8))
    """

    layer_class = MinLSTMLayer


class LRULayer(Layer):
    """One layer of LRU.

    The map of the inputs holds the rows of Re B and Im B in turns, then those of D.
    """

    def __init__(self, input_size: int, hidden_size: int, state_size: int) -> None:
        super().__init__(input_size, 2 * state_size + hidden_size, state_size, 2)
        self.log_decay = nn.Parameter(torch.empty(state_size))
        """ν: |λ| = exp(−exp(ν))."""
        self.log_phase = nn.Parameter(torch.empty(state_size))
        """θ: the angle of λ is exp(θ)."""
        self.log_scale = nn.Parameter(torch.empty(state_size))
        """log γ."""
        self.readout = nn.Parameter(torch.empty(hidden_size, 2 * state_size))
        """Re C and −Im C in turns."""
        self.mix = Linear(hidden_size, 2 * hidden_size, draw=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw λ uniformly from the unit disc, B, C, D from normals.

        γ = √(1 − |λ|²).
        """
        size, columns = len(self.log_decay), self.enter.in_features
        super().reset_parameters(generator)
        self.mix.reset_parameters(generator)
        with torch.no_grad():
            # Half the variance of a complex number lies in each part.
            self.enter.weight[: 2 * size].normal_(std=(2 * columns) ** -0.5, generator=generator)
            self.enter.weight[2 * size :].normal_(std=columns**-0.5, generator=generator)
            self.readout.normal_(std=size**-0.5, generator=generator)
            # Neither logarithm is of zero: `rand` gives no one.
            squares, turns = (1 - torch.rand(size, generator=generator) for _ in range(2))
            self.log_decay.copy_((-0.5 * squares.clamp(max=1 - 1e-7).log()).log())
            self.log_phase.copy_((2 * math.pi * turns).log())
            self.log_scale.copy_(0.5 * torch.log1p(-squares.clamp(max=1 - 1e-7)))

    def forward(self, gates: Gates, state: Tensor, num_outputs: int) -> tuple[Outputs, Tensor]:
        """Return the outputs of the last steps, and the final state."""
        num_steps, width = gates.shape[0], 2 * len(self.log_decay)
        # In polar form a power of λ cannot leave the unit disc.
        factors = torch.polar(torch.exp(-self.log_decay.exp()), self.log_phase.exp())
        pairs = gates[..., :width].unflatten(2, (-1, 2)) * self.log_scale.exp().unsqueeze(1)
        entries = torch.view_as_complex(pairs)
        before = torch.view_as_complex(state.contiguous())
        states = torch.view_as_real(linear_scan(factors.expand_as(entries), entries, before))
        seen = linear(states[num_steps + 1 - num_outputs :].flatten(2), self.readout)
        active = F.gelu(seen.to(gates.dtype) + gates[num_steps - num_outputs :, :, width:])
        mixed = self.mix(active)
        return F.glu(mixed.to(active.dtype), dim=2), states[-1]


class LRU(Stacked):
    """Linear recurrent unit: diagonal complex recurrence, GELU, linear map and GLU.

        x_t = λ ⊙ x_{t−1} + γ ⊙ (B u_t)    λ = exp(−exp(ν) + i exp(θ))    y_t = Re(C x_t) + D u_t

    and on top, as in the authors' blocks, a GELU, a linear map to twice the width and a GLU. The
    state is complex, `(layers, batch, mode, 2)` as pairs of real and imaginary part.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one output.
        num_layers: Number of stacked layers.
        state_size: Complex numbers in a layer's state, N; `hidden_size` if absent.
        rest: `batch_first`, true by default, `device`, `dtype` and `generator`, as in `S4D`.

    Raises:
        ConfigError: As `S4D`.

    Source: Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu and De (2023), "Resurrecting recurrent
    neural networks for long sequences", section 3 and appendix A.

    Differs: From the authors' blocks in that B and D read the input itself, without an encoder
        before them, D is a matrix, one learning rate serves all parameters, and there is neither
        normalisation nor a residual connection nor dropout.

    Examples:
        >>> outputs, state = LRU(4, 8, state_size=16)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 16, 2))
    """

    layer_class = LRULayer

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        state_size: int | None = None,
        **rest: Any,
    ) -> None:
        self.state_size = hidden_size if state_size is None else state_size
        self._check_sizes(state_size=self.state_size)
        self.layer_sizes = (self.state_size,)
        super().__init__(input_size, hidden_size, num_layers, **rest)
