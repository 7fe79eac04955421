"""Models: embedding + code + core + read-out put together."""

from .layer import PositionEncoded
from .plain import PlainRNN
from .position_encoded import PositionEncodedRNN

__all__ = ["PlainRNN", "PositionEncoded", "PositionEncodedRNN"]
