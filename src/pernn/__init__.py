"""pernn: position-encoded recurrent neural networks.

Names are imported on first use: `import pernn` alone loads neither torch nor NumPy.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports


if TYPE_CHECKING:
    from pernn.cores import GRU as GRU, LSTM as LSTM, S4D as S4D, Elman as Elman
    from pernn.encodings import (
        Learned as Learned,
        NoEncoding as NoEncoding,
        Random as Random,
        RepeatedEmbedding as RepeatedEmbedding,
        Sinusoidal as Sinusoidal,
    )
    from pernn.errors import PernnError as PernnError
    from pernn.hub import from_pretrained as from_pretrained, save_pretrained as save_pretrained
    from pernn.models import (
        PositionEncoded as PositionEncoded,
        PositionEncodedRNN as PositionEncodedRNN,
    )
    from pernn.runs import RunSpec as RunSpec, execute as execute, load_model as load_model
    from pernn.sweeps import run as run
    from pernn.trials import load_curves as load_curves, load_results as load_results

__version__ = "0.1.0"

__getattr__ = exports(__name__, "__version__")


def __dir__() -> list[str]:
    return list(globals()["__all__"])
