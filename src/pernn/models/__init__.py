"""Models: embedding + encoding + core + output layer put together."""

from .autoregressive import AutoregressiveRNN
from .extension import extend_vocabulary
from .layer import PositionEncoded
from .network import last_outputs
from .plain import PlainRNN
from .position_encoded import PositionEncodedRNN
from .vector import VectorRNN

__all__ = [
    "AutoregressiveRNN",
    "PlainRNN",
    "PositionEncoded",
    "PositionEncodedRNN",
    "VectorRNN",
    "extend_vocabulary",
    "last_outputs",
]
