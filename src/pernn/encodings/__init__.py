"""Encodings: position → vector. Adding one: a module with its config, a line in `ENCODINGS`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    ENCODINGS,
    AnyEncoding,
    EncodingConfig,
    LearnedConfig,
    NoneConfig,
    PositionalEncodingConfig,
    RandomConfig,
    RepeatedEmbeddingConfig,
    SinusoidalConfig,
)

if TYPE_CHECKING:
    from .absent import NoEncoding, RepeatedEmbedding
    from .encoding import Encoding
    from .sinusoidal import Sinusoidal
    from .tables import Learned, Random

__all__ = [
    "ENCODINGS",
    "AnyEncoding",
    "Encoding",
    "EncodingConfig",
    "Learned",
    "LearnedConfig",
    "NoEncoding",
    "NoneConfig",
    "PositionalEncodingConfig",
    "Random",
    "RandomConfig",
    "RepeatedEmbedding",
    "RepeatedEmbeddingConfig",
    "Sinusoidal",
    "SinusoidalConfig",
]

__getattr__ = exports(
    __name__,
    {
        "RepeatedEmbedding": ".absent",
        "Encoding": ".encoding",
        "Learned": ".tables",
        "NoEncoding": ".absent",
        "Random": ".tables",
        "Sinusoidal": ".sinusoidal",
    },
)
