"""The two controls without positional encoding: nothing, and the embedding twice."""

import torch
from jaxtyping import Float
from torch import Tensor

from .encoding import Encoding


class NoEncoding(Encoding):
    """No positional encoding: the vanilla network."""

    def __init__(self) -> None:
        super().__init__(0)

    def vectors(self, num_steps: int) -> Float[Tensor, "time 0"]:
        """Return encodings of width 0."""
        return torch.empty(num_steps, 0)


class RepeatedEmbedding(NoEncoding):
    """No positional encoding: the embedding concatenated with itself.

    As many input weights as an encoded network of the same encoding size, and no clock.

    Source: Morita (2024), version 5, appendix C.
    """

    embedding_copies = 2
