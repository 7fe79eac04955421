"""pernn: position-encoded recurrent neural networks.

Names are imported on first use: `import pernn` alone loads neither torch nor NumPy.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from pernn.cores import GRU, LSTM, S4D, Elman
    from pernn.encodings import Learned, NoEncoding, Random, RepeatedEmbedding, Sinusoidal
    from pernn.errors import PernnError
    from pernn.models import PositionEncoded, PositionEncodedRNN
    from pernn.reports import load_curves, load_results
    from pernn.runs import RunSpec, execute, load_model
    from pernn.sweeps import run

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "LSTM",
    "S4D",
    "Elman",
    "Learned",
    "NoEncoding",
    "PernnError",
    "PositionEncoded",
    "PositionEncodedRNN",
    "Random",
    "RepeatedEmbedding",
    "RunSpec",
    "Sinusoidal",
    "__version__",
    "execute",
    "load_curves",
    "load_model",
    "load_results",
    "run",
]

__getattr__ = exports(
    __name__,
    {
        "RepeatedEmbedding": "pernn.encodings",
        "Elman": "pernn.cores",
        "GRU": "pernn.cores",
        "LSTM": "pernn.cores",
        "Learned": "pernn.encodings",
        "NoEncoding": "pernn.encodings",
        "PernnError": "pernn.errors",
        "PositionEncoded": "pernn.models",
        "PositionEncodedRNN": "pernn.models",
        "Random": "pernn.encodings",
        "RunSpec": "pernn.runs",
        "S4D": "pernn.cores",
        "Sinusoidal": "pernn.encodings",
        "execute": "pernn.runs",
        "load_curves": "pernn.reports",
        "load_model": "pernn.runs",
        "load_results": "pernn.reports",
        "run": "pernn.sweeps",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
