"""Training: loop, state, evaluation, schedule, precision. Knows interfaces and metrics only."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import PROTOCOLS, Precision, Protocol, ProtocolName, TrainingConfig
from .schedule import learning_rate

if TYPE_CHECKING:
    from .evaluation import decode, evaluate, predict
    from .loop import CheckpointDue, Event, Measured, Updated, advance
    from .precision import choose_device, computing, rounding
    from .state import TrainState

__all__ = [
    "PROTOCOLS",
    "CheckpointDue",
    "Event",
    "Measured",
    "Precision",
    "Protocol",
    "ProtocolName",
    "TrainState",
    "TrainingConfig",
    "Updated",
    "advance",
    "choose_device",
    "computing",
    "decode",
    "evaluate",
    "learning_rate",
    "predict",
    "rounding",
]

__getattr__ = exports(
    __name__,
    {
        "CheckpointDue": ".loop",
        "Event": ".loop",
        "Measured": ".loop",
        "TrainState": ".state",
        "Updated": ".loop",
        "advance": ".loop",
        "choose_device": ".precision",
        "computing": ".precision",
        "decode": ".evaluation",
        "evaluate": ".evaluation",
        "predict": ".evaluation",
        "rounding": ".precision",
    },
)
