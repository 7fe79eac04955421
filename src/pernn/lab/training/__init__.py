"""Training: updates, state, objective, schedule, precision. Knows interfaces and metrics only."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    PRESETS as PRESETS,
    Precision as Precision,
    Preset as Preset,
    PresetName as PresetName,
    TrainingConfig as TrainingConfig,
    encoding_strength as encoding_strength,
    learning_rate as learning_rate,
)

if TYPE_CHECKING:
    from .objective import (
        DeviceBatch as DeviceBatch,
        batch_loss as batch_loss,
        decode as decode,
        evaluate as evaluate,
        evaluate_diverged as evaluate_diverged,
        predict as predict,
        show as show,
    )
    from .devices import (
        choose_device as choose_device,
        computing as computing,
        keep_freed_memory as keep_freed_memory,
        limit_gpu_memory as limit_gpu_memory,
        rounding as rounding,
        share_devices as share_devices,
    )
    from .state import TrainState as TrainState
    from .update import (
        Event as Event,
        Update as Update,
        advance as advance,
        find_usual as find_usual,
        make_update as make_update,
        set_strength as set_strength,
        now as now,
    )

__getattr__ = exports(__name__)
