"""minGRU: a GRU whose gate and candidate do not see the state.

    z_t = σ(W_z x_t + b_z)    h̃_t = W_h x_t + b_h    h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t

Source: Feng, Tung, Ahmed, Bengio and Hajimirsadeghi (2024), "Were RNNs all we needed?",
section 3.1.
"""

from typing import ClassVar

import torch
from torch import Tensor

from .linear_scan import linear_scan
from .stacked import Gates, Layer, Outputs, Stacked


class MinGRULayer(Layer):
    """One layer of minGRU.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of the state.
    """

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

    Its output is its state, `(layers, batch, hidden)`.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one hidden state.
        num_layers: Number of stacked layers.
        options: `batch_first`, true by default, `device`, `dtype` and `generator`, as in `S4D`.

    Raises:
        ConfigError: If a size is not positive, or dropout or a second direction is asked for.

    Differs: From the authors' version in logarithms, which keeps candidates positive, in that
        candidates have either sign, as in their equations.

    Examples:
        >>> outputs, state = MinGRU(4, 8)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 8))
    """

    state_axes = "hidden"

    def make_layer(self, input_size: int) -> MinGRULayer:
        """Make a layer for inputs of a width."""
        return MinGRULayer(input_size, self.hidden_size)
