"""Shared parts of grids: seeds, settings, conditions and their product."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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

VOCABULARY = "task.vocab_size"
RATE, BATCH, UPDATES = "training.learning_rate", "training.batch_size", "training.iterations"

Settings = Mapping[str, Any]
"""Dotted path → value, as for `RunSpec.override`."""


def lasting(updates: int, *, warmup: int, tested: int, saved: int) -> Settings:
    """Return the updates of a training, and of its tests and checkpoints."""
    return {
        UPDATES: updates,
        "training.warmup_updates": warmup,
        "training.evaluation_interval": tested,
        "training.checkpoint_interval": saved,
    }


DEMO_TRAINING = {**lasting(1_000, warmup=100, tested=250, saved=250), BATCH: 32, RATE: 1e-2}
"""Minutes; see docs/reproduce/vocabulary_size.md for how it was found."""

MASTERY_TRAINING = {**lasting(20_000, warmup=200, tested=1_000, saved=5_000), BATCH: 64, RATE: 1e-2}
"""Minutes a trial; enough for the encoded network to master inputs of 8 ids, see docs/evidence."""


def widths(size: int) -> Settings:
    """Make embedding, state and encoding equally wide, as the paper does."""
    return {"embedding_size": size, "core.hidden_size": size, "encoding.size": size}


MASTERY: Settings = {"task.length": 8, **widths(64), **MASTERY_TRAINING}


def brief(*, length: int, size: int, updates: int) -> Settings:
    """Return a setting of minutes on two CPU cores."""
    return {"task.length": length, **widths(size), **DEMO_TRAINING, UPDATES: updates}


SHORT_TRAINING: Settings = {**MASTERY_TRAINING, UPDATES: 8_000}
"""A minute a trial; the encoded LSTM ends near 0.95 at K = 192, the vanilla one near 0.88."""

SMALL: Settings = {"task.length": 8, **widths(64), **SHORT_TRAINING}
"""Length, width and training of most networks in docs/evidence: sections 3 and 4 of its plan."""

CONSTANT: Settings = {"training.schedule": "constant"}
"""Where pace is measured: a rate that falls would confound the late phases."""

SMALL_PACED: Settings = {
    **CONSTANT,
    **lasting(16_000, warmup=200, tested=2_000, saved=8_000),
    "task.length": 8,
    **widths(64),
}

DEMO_PACED: Settings = {
    **CONSTANT,
    **lasting(600, warmup=50, tested=300, saved=300),
    "training.log_interval": 20,
    "task.length": 4,
    **widths(64),
}
"""Seconds a trial: few steps, and vocabularies of which most is learnt in a few hundred updates."""

PAPER_PACED: Settings = {**CONSTANT, **lasting(300_000, warmup=1_000, tested=5_000, saved=5_000)}

Cell = tuple[float, int]
"""A peak rate and a batch size; their quotient is called the temperature."""

HOT, COLD = (0.01, 64), (0.0025, 64)

TENTH = 10
"""What the rates of `paper` are divided by: its networks are eight times as wide."""


def at(cell: Cell, divisor: int = 1) -> Settings:
    """Train at a cell, its rate divided."""
    return {RATE: cell[0] / divisor, BATCH: cell[1]}


def kept(interval: int) -> Settings:
    """Write and keep a checkpoint every `interval` updates."""
    return {"training.checkpoint_interval": interval, "training.keep_interval": interval}


def each(path: str, values: Sequence[Any]) -> list[Settings]:
    """Make one condition per value of a setting."""
    return [{path: value} for value in values]


def encodings(*kinds: str) -> list[Settings]:
    """Make one condition per encoding, by default vanilla and sinusoidal."""
    return each("encoding.kind", kinds or (ENCODING.baseline, ENCODING.treated))


VANILLA, ENCODED = encodings()
LSTM: Settings = {"core.kind": "lstm"}


def kinds(*names: str) -> list[Settings]:
    """Make one condition per core."""
    return each("core.kind", names)


def vocabularies(*sizes: int) -> list[Settings]:
    """Make one condition per vocabulary size."""
    return each(VOCABULARY, sizes)


def cores(**sizes: int | Sequence[int]) -> list[Settings]:
    """Make one condition per core and vocabulary size of its own."""
    return [
        {"core.kind": core, VOCABULARY: size}
        for core, own in sizes.items()
        for size in ([own] if isinstance(own, int) else own)
    ]


def crossed(*axes: Sequence[Settings]) -> list[Settings]:
    """Cross conditions, of which the first vary slowest."""
    return [{k: v for part in parts for k, v in part.items()} for parts in product(*axes)]


def _grid(
    base: Settings, axes: Sequence[Sequence[Settings]], seeds: Sequence[int]
) -> tuple[RunSpec, ...]:
    """Cross seeds and conditions, without settings that a condition's parts do not have."""
    start = RunSpec().override(base)
    conditions = crossed(*axes)
    # Seeds are outermost: an unfinished sweep is a whole study with fewer seeds.
    return tuple(start.override({"seed": seed, **one}) for seed in seeds for one in conditions)


def grids(
    shared: Settings,
    conditions: Sequence[Settings] = (VANILLA, ENCODED),
    *,
    seeds: Mapping[str, Sequence[int]] | None = None,
    **scales: tuple[Settings, *tuple[Sequence[Settings], ...]],
) -> dict[str, Callable[[], tuple[RunSpec, ...]]]:
    """Return an experiment's scales, whose specs are made on demand.

    Args:
        shared: Settings of every scale.
        conditions: What every scale crosses last; vanilla and encoded if absent, nothing if empty.
        seeds: Scale → its seeds, where they are not those of `small` evidence or the paper's.
        scales: Scale → its own settings, then what it crosses.
    """
    own = {"small": SMALL_SEEDS, **(seeds or {})}
    return {
        name: partial(_grid, {**shared, **base}, [*axes, conditions or [{}]], own.get(name, SEEDS))
        for name, (base, *axes) in scales.items()
    }
