"""A position-encoded layer for somebody else's network: vectors in, states out."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from pernn.encodings import Encoding
from pernn.errors import ConfigError


class PositionEncoded(nn.Module):
    """Join positional encodings to vectors, then run any recurrent layer of PyTorch's signature.

    Args:
        layer: `pernn.LSTM`, `torch.nn.LSTM` or the like, whose `input_size` is
            `encoding.joined_size(width of the vectors)`; may be bidirectional or have dropout.
        encoding: The positional encoding.
        batch_first: Whether vectors are `(batch, time, width)`; as the layer says if absent.

    Raises:
        ConfigError: If the encoding is a name (a layer does not tell its width), or nobody says
            which axis is time.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from pernn import PositionEncoded, Sinusoidal
        >>> layer = PositionEncoded(nn.GRU(4 + 6, 8, batch_first=True), Sinusoidal(6))
        >>> outputs, state = layer(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape)
        (2, 5, 8)

        A sequence in chunks, as in truncated backpropagation: state and position go on.

        >>> outputs, state, position = layer(torch.zeros(2, 5, 4), position_offset=0)
        >>> outputs, state, position = layer(torch.zeros(2, 3, 4), state, position_offset=position)
        >>> position
        8
    """

    def __init__(
        self, layer: nn.Module, encoding: Encoding | str, *, batch_first: bool | None = None
    ) -> None:
        super().__init__()
        if not isinstance(encoding, Encoding):
            raise ConfigError(
                "PositionEncoded: encoding is invalid: expected a module such as Sinusoidal(6), "
                f"got {encoding!r:.60}; its size is the layer's input_size less the vectors' width"
            )
        found = getattr(layer, "batch_first", None)
        if batch_first is None:
            batch_first = found
        if batch_first is None or found not in (None, batch_first):
            raise ConfigError(
                f"PositionEncoded: batch_first is invalid: got {batch_first}, and "
                f"{type(layer).__name__} has {found}; pass batch_first as the layer has it"
            )
        self.layer, self.encoding, self.batch_first = layer, encoding, batch_first

    def forward(
        self,
        vectors: Float[Tensor, "*shape width"] | PackedSequence,
        hx: Any = None,
        *,
        position_offset: int | None = None,
    ) -> tuple[Any, ...]:
        """Run the layer.

        Args:
            vectors: As the layer takes them, `(time, width)` for a single sequence included.
            hx: The layer's initial state, as in PyTorch.
            position_offset: Position of the first step; needed with `hx`, since a state is either
                the beginning of a sequence (0) or its continuation.

        Returns:
            The layer's outputs and final state; with `position_offset` also the position of the
            step that comes next.

        Raises:
            ConfigError: If the vectors are packed or of another width than the layer takes, or a
                state comes without its position.
        """
        if isinstance(vectors, PackedSequence):
            raise ConfigError(
                "PositionEncoded takes no PackedSequence: pass padded vectors, and mask the outputs"
            )
        check_position(hx, position_offset, self.encoding)
        offset = position_offset or 0
        joined = self.encoding.join(vectors, position_offset=offset, batch_first=self.batch_first)
        width, wanted = joined.shape[-1], getattr(self.layer, "input_size", None)
        if isinstance(wanted, int) and wanted != width:
            raise ConfigError(
                f"PositionEncoded: the layer's input_size is invalid: expected {width}, the "
                f"{vectors.shape[-1]} of the vectors with their encoding, got {wanted}"
            )
        outputs, final = self.layer(joined, hx)
        if position_offset is None:
            return outputs, final
        time_first = vectors.dim() == 3 and not self.batch_first
        return outputs, final, offset + vectors.shape[0 if time_first else -2]


def check_position(hx: Any, position_offset: int | None, encoding: Encoding) -> None:
    """Refuse a state without a position: counting from 0 again would be a silent error.

    Raises:
        ConfigError: If there is a state and a positional encoding, but no position.
    """
    if hx is not None and position_offset is None and encoding.size:
        raise ConfigError(
            "position_offset is missing: with an initial state pass position_offset=0 if the "
            "sequence begins here, or the position that the call before returned if it goes on"
        )
