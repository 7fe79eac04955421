"""Affine maps whose weights come from a generator of one's own."""

import math

import torch
from torch import nn


class UndrawnLinear(nn.Linear):
    """A `torch.nn.Linear` that is built empty, to be drawn by `reset_linear`.

    PyTorch's own initialisation would draw from the global generator, and `skip_init` takes a third
    of a second the first time.
    """

    def reset_parameters(self) -> None:
        """Draw nothing."""


def reset_linear(linear: nn.Linear, generator: torch.Generator | None) -> None:
    """Draw weights and biases from U(−1/√in, 1/√in), as `torch.nn.Linear` does."""
    bound = 1 / math.sqrt(linear.in_features)
    for parameter in linear.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
