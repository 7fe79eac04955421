"""Cores: vectors → states."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .adapted import Adapted as Adapted
    from .core import (
        Core as Core,
        Linear as Linear,
        Recurrence as Recurrence,
        map_state as map_state,
        pack_as as pack_as,
    )
    from .elman import Elman as Elman
    from .gated_delta import GatedDelta as GatedDelta
    from .gru import GRU as GRU
    from .lru import LRU as LRU
    from .lstm import LSTM as LSTM
    from .min_gru import MinGRU as MinGRU
    from .min_lstm import MinLSTM as MinLSTM
    from .projected import Projected as Projected
    from .recurrent import LayerFactors as LayerFactors, RecurrentCore as RecurrentCore
    from .s4d import S4D as S4D

__getattr__ = exports(__name__)
