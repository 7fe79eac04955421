"""Models: embedding + encoding + core + output layer put together."""

from pernn.lazy import exports

from .extension import extend_vocabulary as extend_vocabulary
from .layer import PositionEncoded as PositionEncoded
from .network import run_core as run_core
from .position_encoded import PositionEncodedRNN as PositionEncodedRNN
from .variants import (
    AutoregressiveRNN as AutoregressiveRNN,
    CodedRNN as CodedRNN,
    VectorRNN as VectorRNN,
)

__getattr__ = exports(__name__)
