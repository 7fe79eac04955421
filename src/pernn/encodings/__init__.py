"""Encodings: position → vector. Adding one: a module with its config, a line in `ENCODINGS`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    ENCODINGS as ENCODINGS,
    AnyEncoding as AnyEncoding,
    PositionalEncodingConfig as PositionalEncodingConfig,
    EncodingConfig as EncodingConfig,
    ConstantConfig as ConstantConfig,
    LearnedConfig as LearnedConfig,
    NoneConfig as NoneConfig,
    RandomConfig as RandomConfig,
    RepeatedEmbeddingConfig as RepeatedEmbeddingConfig,
    SinusoidalConfig as SinusoidalConfig,
)

if TYPE_CHECKING:
    from .constant import Constant as Constant
    from .encoding import (
        Encoding as Encoding,
        NoEncoding as NoEncoding,
        RepeatedEmbedding as RepeatedEmbedding,
        refuse_trace as refuse_trace,
    )
    from .sinusoidal import Sinusoidal as Sinusoidal
    from .tables import Learned as Learned, Random as Random

__getattr__ = exports(__name__)
