"""Encodings: position → vector. Adding one: a module with its config, a line in `ENCODINGS`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    ENCODINGS,
    AnyEncoding,
    CodeConfig,
    DoubleConfig,
    EncodingConfig,
    LearnedConfig,
    NoneConfig,
    RandomConfig,
    SinusoidalConfig,
)

if TYPE_CHECKING:
    from .absent import Double, NoEncoding
    from .encoding import Encoding
    from .sinusoidal import Sinusoidal
    from .tables import Learned, Random

__all__ = [
    "ENCODINGS",
    "AnyEncoding",
    "CodeConfig",
    "Double",
    "DoubleConfig",
    "Encoding",
    "EncodingConfig",
    "Learned",
    "LearnedConfig",
    "NoEncoding",
    "NoneConfig",
    "Random",
    "RandomConfig",
    "Sinusoidal",
    "SinusoidalConfig",
]

__getattr__ = exports(
    __name__,
    {
        "Double": ".absent",
        "Encoding": ".encoding",
        "Learned": ".tables",
        "NoEncoding": ".absent",
        "Random": ".tables",
        "Sinusoidal": ".sinusoidal",
    },
)
