"""Encodings: position → vector."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .encoding import (
        Constant as Constant,
        Encoding as Encoding,
        NoEncoding as NoEncoding,
        RepeatedEmbedding as RepeatedEmbedding,
        check_offset as check_offset,
    )
    from .oscillators import oscillator_problem as oscillator_problem
    from .sinusoidal import Sinusoidal as Sinusoidal
    from .tables import Learned as Learned, Random as Random

__getattr__ = exports(__name__)
