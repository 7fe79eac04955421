"""A position-encoded layer for somebody else's network: vectors in, states out."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from pernn.encodings import Encoding


class PositionEncoded(nn.Module):
    """Attach codes to vectors, then run any recurrent layer with PyTorch's signature.

    Args:
        layer: `pernn.LSTM`, `torch.nn.LSTM(batch_first=True)` or the like, whose `input_size` is
            `encoding.joined_size(width of the vectors)`.
        encoding: What gives the codes.

    Example:
        >>> import torch
        >>> from pernn import PositionEncoded, Sinusoidal
        >>> layer = PositionEncoded(nn.GRU(4 + 6, 8, batch_first=True), Sinusoidal(6))
        >>> tuple(layer(torch.zeros(2, 5, 4))[0].shape)
        (2, 5, 8)
    """

    def __init__(self, layer: nn.Module, encoding: Encoding) -> None:
        super().__init__()
        self.layer, self.encoding = layer, encoding

    def forward(
        self, vectors: Float[Tensor, "batch time width"], state: Any = None
    ) -> tuple[Float[Tensor, "batch time hidden"], Any]:
        """Give the layer's outputs and final state."""
        outputs, final = self.layer(self.encoding.join(vectors), state)
        return outputs, final
