"""Cores: vectors → states."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .core import (
        Adapted as Adapted,
        Core as Core,
        Linear as Linear,
        Projected as Projected,
        Recurrence as Recurrence,
        map_state as map_state,
        pack_as as pack_as,
    )
    from .diagonal import LRU as LRU, MinGRU as MinGRU, MinLSTM as MinLSTM
    from .elman import Elman as Elman
    from .gated_delta import GatedDelta as GatedDelta
    from .gru import GRU as GRU
    from .lstm import LSTM as LSTM
    from .recurrent import LayerFactors as LayerFactors, RecurrentCore as RecurrentCore
    from .s4d import S4D as S4D

__getattr__ = exports(__name__)
