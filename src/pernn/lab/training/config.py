"""Parameters of training, and the two presets. Never loads torch."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pernn.lab.config import Config

Precision = Literal["fp32", "tf32", "bf16"]
Schedule = Literal["cosine", "constant"]
EncodingSchedule = Literal["always", "early", "late", "withdrawn"]
Optimizer = Literal["adam", "adam_0.999", "sgd", "sign"]
PresetName = Literal["as-run", "as-written"]


@dataclass(frozen=True)
class Preset:
    """Settings in which the published runs and the published texts differ.

    Attributes:
        betas: Adam's decay rates.
        epsilon: Adam's epsilon.
        clip_norm: Largest global gradient norm; no clipping if absent.
        layout: Order of the sinusoidal features.
        rare_share: Probability of a Rare token in the dual-frequency task.
    """

    betas: tuple[float, float]
    epsilon: float
    clip_norm: float | None
    layout: Literal["interleaved", "halves"]
    rare_share: float


PRESETS: dict[PresetName, Preset] = {
    "as-run": Preset((0.9, 0.98), 1e-9, 1.0, "halves", 1 / 8),
    "as-written": Preset((0.9, 0.999), 1e-8, None, "interleaved", 1 / 4),
}


class TrainingConfig(Config):
    """Length and rate of training, by default the paper's.

    Attributes:
        iterations: Number of updates, N.
        batch_size: Sequences per update.
        learning_rate: Peak rate.
        warmup_updates: Updates of linear warm-up, W.
        precision: `fp32`; `tf32` (CUDA only); `bf16`: products in bfloat16, the rest in float32.
        log_interval: Updates per line of training metrics (means over them).
        evaluation_interval: Updates between evaluations on the held-out sequences.
        checkpoint_interval: Updates between checkpoints.
        keep_interval: Keep every checkpoint at a multiple of this for good, for analyses; none if
            absent. The last two are always kept. No checkpoint is written for its sake: kept are
            those at multiples of `checkpoint_interval`, too.
        micro_batch: Sequences at a time: a batch goes in pieces of this size, whose gradients are
            added up, which needs less memory; all at once if absent, and then left out of the file.
        schedule: Rate after the warm-up: `cosine` falls to about 0, `constant` stays at the peak;
            the former is left out of the file.
        encoding_schedule: When there is a positional encoding, see `encoding_strength`; `always`
            is left out of the file.
        optimizer: `adam`, with the preset's betas, or a second one of 0.999 (`adam_0.999`); `sgd`
            and `sign`, gradient and sign descent with a momentum of 0.9; the first is left out of
            the file.
        frozen_embedding: Whether the vectors of tokens stay as they were drawn; left out of the
            file unless they do.
    """

    younger: ClassVar[tuple[str, ...]] = (
        "micro_batch",
        "schedule",
        "encoding_schedule",
        "optimizer",
        "frozen_embedding",
    )
    iterations: Annotated[int, Field(ge=1, le=10**9)] = 300_000
    batch_size: Annotated[int, Field(ge=1, le=10**6)] = 512
    learning_rate: Annotated[float, Field(gt=0, le=1e3)] = 1e-3
    warmup_updates: Annotated[int, Field(ge=0, le=10**9)] = 1_000
    precision: Precision = "fp32"
    log_interval: Annotated[int, Field(ge=1, le=2**63 - 1)] = 100
    evaluation_interval: Annotated[int, Field(ge=1, le=2**63 - 1)] = 5_000
    checkpoint_interval: Annotated[int, Field(ge=1, le=2**63 - 1)] = 5_000
    keep_interval: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None
    micro_batch: Annotated[int, Field(ge=1, le=10**6)] | None = None
    schedule: Schedule = "cosine"
    encoding_schedule: EncodingSchedule = "always"
    optimizer: Optimizer = "adam"
    frozen_embedding: bool = False

    @property
    def kept_interval(self) -> int:
        """Updates between checkpoints that are kept, beside the last."""
        return math.lcm(self.keep_interval or self.iterations, self.checkpoint_interval)


def learning_rate(update: int, config: TrainingConfig) -> float:
    """Return the rate that update n = 1, 2, …, N uses.

    With s = n − 1: lr·s/W for s < W, else lr·½·(1 + cos(π·(s − W)/N)), or lr if the schedule is
    constant. The first update has rate 0, and the last one's is not quite 0.

    Source: the published runs; Morita (2024), section 4.2, names warm-up and cosine.
    """
    step, warmup = update - 1, config.warmup_updates
    if step < warmup:
        return config.learning_rate * step / warmup
    if config.schedule == "constant":
        return config.learning_rate
    phase = math.pi * (step - warmup) / config.iterations
    return config.learning_rate * 0.5 * (1 + math.cos(phase))


def encoding_strength(update: int, config: TrainingConfig) -> float:
    """Return the positional encoding's factor from update n on.

    `early`: 1 for a quarter of the updates, then falling linearly to 0 at half; `late`: 0 for the
    first half, then 1; `withdrawn`: 1 but for the last update, so that the trained network is
    measured without it.
    """
    match config.encoding_schedule:
        case "always":
            return 1.0
        case "early":
            return min(1.0, max(0.0, 2 - 4 * update / config.iterations))
        case "late":
            return float(2 * update > config.iterations)
        case "withdrawn":
            return float(update < config.iterations)
