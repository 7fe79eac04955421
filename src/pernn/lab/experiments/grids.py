"""Shared parts of grids: seeds, conditions and their product."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec

from .predicates import Contrast

SEEDS = (111, 222, 333, 444, 555)
"""The published seeds."""

VALIDATION_SEEDS = (1_009, 2_003, 3_001)
"""Seeds that choose settings: no experiment is judged by them, nor were pilots run with them."""

SMALL_SEEDS = (*SEEDS, 666, 777, 888)
"""The seeds of published evidence: the paper's and three more."""

MAX_SEEDS = 100
"""Beyond this a number of seeds is more likely a seed."""


def first_seeds(count: int) -> tuple[int, ...]:
    """Return the first seeds of the series 111, 222 and so on.

    The published ones come first, then fixed further ones.

    Raises:
        ConfigError: If there are none or more than `MAX_SEEDS`.
    """
    if not 1 <= count <= MAX_SEEDS:
        raise ConfigError(
            f"a number of seeds is invalid: expected 1 to {MAX_SEEDS}, got {count}; one seed alone "
            f"is `--set seed={count}`"
        )
    return tuple(SEEDS[0] * number for number in range(1, count + 1))


ENCODING = Contrast("encoding.kind", treated="sinusoidal", baseline="none")
"""Vanilla against position-encoded: the comparison of most experiments."""

POWERS = tuple(2**exponent for exponent in range(1, 15))
"""The published vocabulary sizes: 2, 4 … 16,384."""

Settings = Mapping[str, Any]
"""Dotted path → value, as for `RunSpec.override`."""

DEMO_TRAINING: Settings = {
    "training.iterations": 1_000,
    "training.batch_size": 32,
    "training.learning_rate": 1e-2,
    "training.warmup_updates": 100,
    "training.evaluation_interval": 250,
    "training.checkpoint_interval": 250,
}
"""Minutes; see docs/reproduce/vocabulary_size.md for how it was found."""

MASTERY_TRAINING: Settings = {
    "training.iterations": 20_000,
    "training.batch_size": 64,
    "training.learning_rate": 1e-2,
    "training.warmup_updates": 200,
    "training.evaluation_interval": 1_000,
    "training.checkpoint_interval": 5_000,
}
"""Minutes a trial; enough for the encoded network to master inputs of 8 ids, see docs/evidence."""


def widths(size: int) -> Settings:
    """Make embedding, state and encoding equally wide, as the paper does."""
    return {"embedding_size": size, "core.hidden_size": size, "encoding.size": size}


SHORT_TRAINING: Settings = {**MASTERY_TRAINING, "training.iterations": 8_000}
"""A minute a trial; the encoded LSTM ends near 0.95 at K = 192, the vanilla one near 0.86."""

SMALL: Settings = {"task.length": 8, **widths(64), **SHORT_TRAINING}
"""Length, width and training of most networks in docs/evidence: sections 3 and 4 of its plan."""


def each(path: str, values: Sequence[Any]) -> list[Settings]:
    """Make one condition per value of a setting."""
    return [{path: value} for value in values]


def encodings(*kinds: str) -> list[Settings]:
    """Make one condition per encoding, by default vanilla and sinusoidal."""
    return each("encoding.kind", kinds or (ENCODING.baseline, ENCODING.treated))


def grid(
    base: Settings, *axes: Sequence[Settings], seeds: Sequence[int] = SEEDS
) -> tuple[RunSpec, ...]:
    """Cross seeds and conditions, of which the first varies slowest.

    Seeds are outermost, so that an unfinished sweep is a whole study with fewer seeds. Settings
    that a condition's parts do not have (a width of no encoding) are left out for it.
    """
    start = RunSpec().override(base)
    return tuple(
        start.override({"seed": seed, **{k: v for part in parts for k, v in part.items()}})
        for seed in seeds
        for parts in product(*axes)
    )
