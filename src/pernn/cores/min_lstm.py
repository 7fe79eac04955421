"""minLSTM: an LSTM whose gates do not see the state.

    f_t = σ(W_f x_t + b_f)    i_t = σ(W_i x_t + b_i)    h̃_t = W_h x_t + b_h
    h_t = f_t / (f_t + i_t) ⊙ h_{t−1} + i_t / (f_t + i_t) ⊙ h̃_t

Source: Feng, Tung, Ahmed, Bengio and Hajimirsadeghi (2024), "Were RNNs all we needed?",
section 3.2.
"""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from .min_gru import MinGRULayer
from .stacked import Gates, Stacked


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

    Its output is its state, `(layers, batch, hidden)`: there is no cell and no output gate.

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
        >>> outputs, state = MinLSTM(4, 8)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 8))
    """

    state_axes = "hidden"

    def make_layer(self, input_size: int) -> MinLSTMLayer:
        """Make a layer for inputs of a width."""
        return MinLSTMLayer(input_size, self.hidden_size)
