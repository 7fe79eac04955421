"""Training: loop, state, evaluation, schedule, precision. Knows interfaces and metrics only."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import PRESETS, Precision, Preset, PresetName, TrainingConfig
from .schedule import learning_rate

if TYPE_CHECKING:
    from .allocation import keep_freed_memory
    from .cross_entropy import linear_cross_entropy
    from .evaluation import decode, evaluate, evaluate_diverged, predict
    from .loop import CheckpointDue, Event, Measured, Updated, advance
    from .objective import DeviceBatch
    from .precision import choose_device, computing, rounding
    from .state import TrainState
    from .update import Update, make_update

__all__ = [
    "PRESETS",
    "CheckpointDue",
    "DeviceBatch",
    "Event",
    "Measured",
    "Precision",
    "Preset",
    "PresetName",
    "TrainState",
    "TrainingConfig",
    "Update",
    "Updated",
    "advance",
    "choose_device",
    "computing",
    "decode",
    "evaluate",
    "evaluate_diverged",
    "keep_freed_memory",
    "learning_rate",
    "linear_cross_entropy",
    "make_update",
    "predict",
    "rounding",
]

__getattr__ = exports(
    __name__,
    {
        "CheckpointDue": ".loop",
        "Event": ".loop",
        "Measured": ".loop",
        "DeviceBatch": ".objective",
        "TrainState": ".state",
        "Update": ".update",
        "Updated": ".loop",
        "advance": ".loop",
        "choose_device": ".precision",
        "computing": ".precision",
        "decode": ".evaluation",
        "evaluate": ".evaluation",
        "evaluate_diverged": ".evaluation",
        "keep_freed_memory": ".allocation",
        "linear_cross_entropy": ".cross_entropy",
        "make_update": ".update",
        "predict": ".evaluation",
        "rounding": ".precision",
    },
)
