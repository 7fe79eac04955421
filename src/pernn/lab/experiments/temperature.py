"""Does the encoding pay where the gradients are noisy?

The noise of an update grows with rate / batch, here called the temperature. Three temperatures, two
of them reached in several ways, at a constant rate: what the encoding is worth must follow the
temperature and nothing else if it is that an encoded network bears more of this noise.

Source: ours; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pernn.lab.runs import RunSpec

from .comparisons import CORES, LABELS, labels
from .experiment import Experiment, FigureLayout
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, encodings, grid, widths
from .learning_rate import COLUMN, PLACE
from .predicates import (
    PLANNED,
    Claim,
    Contrast,
    Equivalent,
    Grows,
    Sooner,
    pace_column,
    with_primary,
)

BATCH = "training.batch_size"
LEVEL = 0.9
GAIN = Contrast("encoding.kind", treated=ENCODING.baseline, baseline=ENCODING.treated)
"""Of log2 updates: how much longer the vanilla network takes."""

CELLS = ((0.0025, 64), (0.005, 128), (0.01, 256), (0.005, 64), (0.01, 128), (0.01, 64))
"""Peak rate and batch size: three of equal temperature, two of twice that, one of four times."""
COLD, HOT = CELLS[0], CELLS[-1]
TENTH = 10
"""What the rates of `paper` are divided by: its networks are eight times as wide."""

SINGLE_BATCH: dict[str, Settings] = {"gru": {}, "lstm": {BATCH: COLD[1]}}
"""Core → what selects its cells of one batch size; the GRU has no others."""

PACED: Settings = {
    "training.schedule": "constant",
    "training.iterations": 16_000,
    "training.warmup_updates": 200,
    "training.evaluation_interval": 2_000,
    "training.checkpoint_interval": 8_000,
}
"""Training where pace is measured: a rate that falls would confound the late phases."""
SMALL_PACED: Settings = {"task.length": 8, **widths(64), **PACED}
DEMO_PACED: Settings = {
    **PACED,
    "task.length": 4,
    **widths(64),
    "training.iterations": 600,
    "training.warmup_updates": 50,
    "training.log_interval": 20,
    "training.evaluation_interval": 300,
    "training.checkpoint_interval": 300,
}
"""Seconds a trial: few steps, and vocabularies of which most is learnt in a few hundred updates."""
PAPER_PACED: Settings = {
    **PACED,
    "training.iterations": 300_000,
    "training.warmup_updates": 1_000,
    "training.evaluation_interval": 5_000,
    "training.checkpoint_interval": 5_000,
}


def _specs(
    base: Settings, vocabularies: Mapping[str, int], seeds: Sequence[int], divisor: int = 1
) -> tuple[RunSpec, ...]:
    """Cross cells and encodings: the GRU at one batch size, double embeddings where it is cold."""
    cells = {"gru": [cell for cell in CELLS if cell[1] == COLD[1]], "lstm": CELLS}
    conditions = [
        {
            "core.kind": core,
            "task.vocab_size": size,
            COLUMN: cell[0] / divisor,
            BATCH: cell[1],
            **code,
        }
        for core, size in vocabularies.items()
        for cell in cells[core]
        for code in (*encodings(), *encodings("repeated_embedding")[: cell == COLD])
    ]
    return grid(base, conditions, seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return _specs(DEMO_PACED, {"gru": 8, "lstm": 16}, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for an evening on two CPU cores.

    The networks of the short trainings are trained for twice as long.
    """
    return _specs(SMALL_PACED, {"gru": 64, "lstm": 192}, SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """Return the published sizes, for GPUs."""
    return _specs(PAPER_PACED, {"gru": 64, "lstm": 1_024}, SEEDS, TENTH)


def either(rate: float) -> Settings:
    """Select a rate of `small`, or that of `paper` in its place."""
    return {COLUMN: (rate, rate / TENTH)}


def gain_grows(
    along: str, where: Settings, sign: Literal[1, -1] = 1, level: float = LEVEL
) -> Grows:
    """State that the saved factor of updates grows with a setting."""
    return Grows(pace_column(level), where, GAIN, along=along, sign=sign)


def _rises(core: str) -> Claim:
    return Claim(
        name=f"gain_rises_with_rate_{core}",
        statement=f"The hotter at equal batches, the larger the factor of updates to {LEVEL} that "
        f"the encoding saves the {CORES[core]} (our check).",
        source=PLACE,
        predicate=gain_grows(COLUMN, {"core.kind": core, **SINGLE_BATCH[core]}),
    )


def _same(cell: tuple[float, int], other: tuple[float, int]) -> Claim:
    (rate, batch), (other_rate, other_batch) = cell, other
    return Claim(
        name=f"same_gain_{rate:g}_{batch}_and_{other_rate:g}_{other_batch}",
        statement=f"At rate {rate:g} and batch {batch} the encoding saves the LSTM the same factor "
        f"of updates to {LEVEL} as at {other_rate:g} and {other_batch}, equally hot (our check).",
        source=PLACE,
        predicate=Equivalent(
            pace_column(LEVEL),
            {"core.kind": "lstm"},
            GAIN,
            "task.vocab_size",
            PLANNED,
            margin=0.7,
            margin_origin="ours: half of the published log2 factor at the hot cell, at least 1.4",
            between=Contrast(
                BATCH,
                treated=batch,
                baseline=other_batch,
                treated_where=either(rate),
                baseline_where=either(other_rate),
            ),
        ),
    )


PRIMARY = (
    _rises("lstm"),
    _same((0.005, 128), COLD),
    _same((0.01, 256), COLD),
    _same((0.01, 128), (0.005, 64)),
)
OTHERS = (
    _rises("gru"),
    Claim(
        name="gain_falls_with_batch_lstm",
        statement="At the highest rate the factor that the encoding saves the LSTM falls as the "
        "batch grows (our check).",
        source=PLACE,
        predicate=gain_grows(BATCH, {"core.kind": "lstm", **either(HOT[0])}, -1),
    ),
    *(
        Claim(
            name=f"accuracy_gain_rises_with_rate_{core}",
            statement=f"The hotter at equal batches, the larger the {CORES[core]}'s gain in final "
            "accuracy (our check).",
            source=PLACE,
            predicate=Grows("token_accuracy", {"core.kind": core, **where}, ENCODING, along=COLUMN),
        )
        for core, where in SINGLE_BATCH.items()
    ),
    *(
        Claim(
            name=f"sooner_when_cold_{core}",
            statement=f"The encoding brings the {CORES[core]} to {LEVEL} in fewer updates at the "
            "cold cell, too (our check).",
            source=PLACE,
            predicate=Sooner(
                LEVEL,
                {"core.kind": core, BATCH: COLD[1], **either(COLD[0])},
                ENCODING,
                "task.vocab_size",
            ),
        )
        for core in ("gru", "lstm")
    ),
    *(
        Claim(
            name=f"sooner_than_double_when_cold_{core}",
            statement=f"At the cold cell the encoded {CORES[core]} is sooner than the double "
            "vanilla one (our check).",
            source=PLACE,
            predicate=Sooner(
                LEVEL,
                {"core.kind": core, BATCH: COLD[1], **either(COLD[0])},
                Contrast("encoding.kind", "sinusoidal", "repeated_embedding"),
                "task.vocab_size",
            ),
        )
        for core in ("gru", "lstm")
    ),
)

FIGURE = FigureLayout(
    x=COLUMN,
    panels=("core.kind", BATCH),
    lines="encoding.kind",
    metrics=tuple(pace_column(level) for level in (0.5, 0.8, LEVEL)),
    contrast=ENCODING,
    x_base=2,
    form="factors",
)
ACCURACY = replace(FIGURE, metrics=("token_accuracy",), form="points")

EXPERIMENT = Experiment(
    name="temperature",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary((*PRIMARY, *OTHERS), *(one.name for one in PRIMARY)),
    figure=FIGURE,
    more_figures={"accuracy": ACCURACY},
    labels={
        **labels(FIGURE, "gru", "lstm", "none", "repeated_embedding", "sinusoidal"),
        "token_accuracy": LABELS["token_accuracy"],
        "accuracy": "Final accuracy at the same cells",
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
