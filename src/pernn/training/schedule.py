"""The learning rate: linear warm-up, then a cosine whose period is the whole training."""

import math

from .config import TrainingConfig


def learning_rate(update: int, config: TrainingConfig) -> float:
    """Return the rate that update n = 1, 2, …, N uses.

    With s = n − 1: lr·s/W for s < W, else lr·½·(1 + cos(π·(s − W)/N)). The first update has rate
    0, and the last one's is not quite 0.

    Source: the published runs; Morita (2024), section 4.2, names warm-up and cosine.
    """
    step, warmup = update - 1, config.warmup_updates
    if step < warmup:
        return config.learning_rate * step / warmup
    phase = math.pi * (step - warmup) / config.iterations
    return config.learning_rate * 0.5 * (1 + math.cos(phase))
