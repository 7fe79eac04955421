"""Cores: vectors → states. Adding one: a module with its config, and a line in `CORES`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    CORES as CORES,
    AnyCore as AnyCore,
    CoreConfig as CoreConfig,
    ElmanConfig as ElmanConfig,
    GRUConfig as GRUConfig,
    LSTMConfig as LSTMConfig,
    S4DConfig as S4DConfig,
)

if TYPE_CHECKING:
    from .adapted import Adapted as Adapted
    from .core import (
        Core as Core,
        Linear as Linear,
        map_state as map_state,
        pack_as as pack_as,
    )
    from .elman import Elman as Elman
    from .factors import LayerFactors as LayerFactors
    from .gru import GRU as GRU
    from .lstm import LSTM as LSTM
    from .projected import Projected as Projected
    from .recurrent import RecurrentCore as RecurrentCore
    from .s4d import S4D as S4D

__getattr__ = exports(__name__)
