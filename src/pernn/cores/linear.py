"""Affine maps whose weights come from a generator of one's own."""

import math

import torch
from torch import Tensor, nn

from pernn.kernels import linear


class Linear(nn.Linear):
    """A `torch.nn.Linear` that is built empty, to be drawn by `reset_parameters`.

    PyTorch's own would draw from the global generator when it is built, and `skip_init`, which
    prevents that, takes a third of a second the first time.
    """

    _is_built = False

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Return the map of rows, in this package's arithmetic."""
        return linear(input, self.weight, self.bias)

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self._is_built = True

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights and biases from U(−1/√in, 1/√in), as `torch.nn.Linear` does."""
        # PyTorch's constructor calls this.
        if self._is_built:
            bound = 1 / math.sqrt(self.in_features)
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
