"""LRU: a linear recurrence with complex, stable, diagonal, constant factors.

    x_t = λ ⊙ x_{t−1} + γ ⊙ (B u_t)    λ = exp(−exp(ν) + i exp(θ))    y_t = Re(C x_t) + D u_t

and on top, as in the authors' blocks, a GELU, a linear map to twice the width and a GLU.

Source: Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu and De (2023), "Resurrecting recurrent
neural networks for long sequences", section 3 and appendix A.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.kernels import linear

from .core import Linear, check_sizes
from .linear_scan import linear_scan
from .stacked import Gates, Layer, Outputs, Stacked


class LRULayer(Layer):
    """One layer of LRU.

    The map of the inputs holds the rows of Re B and Im B in turns, then those of D.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one output.
        state_size: Complex numbers in the state, N.
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

    The state is complex, `(layers, batch, mode, 2)` as pairs of real and imaginary part.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one output.
        num_layers: Number of stacked layers.
        state_size: Complex numbers in a layer's state, N; `hidden_size` if absent.
        rest: `batch_first`, true by default, `device`, `dtype` and `generator`, as in `S4D`.

    Raises:
        ConfigError: If a size is not positive, or dropout or a second direction is asked for.

    Differs: From the authors' blocks in that B and D read the input itself, without an encoder
        before them, D is a matrix, one learning rate serves all parameters, and there is neither
        normalisation nor a residual connection nor dropout.

    Examples:
        >>> outputs, state = LRU(4, 8, state_size=16)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 16, 2))
    """

    state_axes = "mode, part"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        state_size: int | None = None,
        **rest: Any,
    ) -> None:
        state_size = hidden_size if state_size is None else state_size
        check_sizes(self, state_size=state_size)
        self.state_size = state_size
        super().__init__(input_size, hidden_size, num_layers, **rest)

    def make_layer(self, input_size: int) -> LRULayer:
        """Make a layer for inputs of a width."""
        return LRULayer(input_size, self.hidden_size, self.state_size)
