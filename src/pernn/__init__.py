"""pernn: position-encoded recurrent neural networks in PyTorch.

The modules stand here; experiments, tasks and training in `pernn.lab`. Names are imported on first
use: `import pernn` alone loads neither torch nor NumPy.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from pernn.cores import (
        GRU as GRU,
        LRU as LRU,
        LSTM as LSTM,
        S4D as S4D,
        Elman as Elman,
        GatedDelta as GatedDelta,
        MinGRU as MinGRU,
        MinLSTM as MinLSTM,
    )
    from pernn.encodings import (
        Constant as Constant,
        Learned as Learned,
        NoEncoding as NoEncoding,
        Random as Random,
        RepeatedEmbedding as RepeatedEmbedding,
        Sinusoidal as Sinusoidal,
    )
    from pernn.errors import PernnError as PernnError
    from pernn.models import (
        PositionEncoded as PositionEncoded,
        PositionEncodedRNN as PositionEncodedRNN,
    )

__version__ = "0.1.0"

__getattr__ = exports(__name__, "__version__")
