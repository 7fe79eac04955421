"""Cores: vectors → states. Adding one: a module with its config, and a line in `CORES`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import CORES, AnyCore, CoreConfig, ElmanConfig, GRUConfig, LSTMConfig, S4DConfig

if TYPE_CHECKING:
    from .elman import Elman
    from .gru import GRU
    from .linear import Linear
    from .lstm import LSTM
    from .projected import Projected
    from .recurrent import RecurrentCore
    from .s4d import S4D

__all__ = [
    "CORES",
    "GRU",
    "LSTM",
    "S4D",
    "AnyCore",
    "CoreConfig",
    "Elman",
    "ElmanConfig",
    "GRUConfig",
    "LSTMConfig",
    "Linear",
    "Projected",
    "RecurrentCore",
    "S4DConfig",
]

__getattr__ = exports(
    __name__,
    {
        "Elman": ".elman",
        "GRU": ".gru",
        "LSTM": ".lstm",
        "Linear": ".linear",
        "Projected": ".projected",
        "RecurrentCore": ".recurrent",
        "S4D": ".s4d",
    },
)
