"""The same vector at every step: a drive that tells no time."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .encoding import Encoding


class Constant(Encoding):
    """A control of unit norm whose features are all alike.

    The arguments are those of `Encoding`.
    """

    anchor: Tensor

    def __init__(self, size: int, **placement: Any) -> None:
        super().__init__(size, **placement)
        # Tells where the module lives and in which precision.
        self.register_buffer("anchor", torch.empty(0), persistent=False)

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return 1/√D everywhere."""
        return self.anchor.new_full((num_steps, self.size), self.size**-0.5)
