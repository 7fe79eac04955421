"""Cores: vectors → states. Adding one: a module with its config, and a line in `CORES`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import CORES, AnyCore, CoreConfig, ElmanConfig, GRUConfig, LSTMConfig, S4DConfig

if TYPE_CHECKING:
    from .adapted import Adapted
    from .core import Core, map_state
    from .elman import Elman
    from .factors import LayerFactors
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
    "Adapted",
    "AnyCore",
    "Core",
    "CoreConfig",
    "Elman",
    "ElmanConfig",
    "GRUConfig",
    "LSTMConfig",
    "LayerFactors",
    "Linear",
    "Projected",
    "RecurrentCore",
    "S4DConfig",
    "map_state",
]

__getattr__ = exports(
    __name__,
    {
        "Adapted": ".adapted",
        "Core": ".core",
        "Elman": ".elman",
        "GRU": ".gru",
        "LSTM": ".lstm",
        "LayerFactors": ".factors",
        "Linear": ".linear",
        "Projected": ".projected",
        "RecurrentCore": ".recurrent",
        "S4D": ".s4d",
        "map_state": ".core",
    },
)
