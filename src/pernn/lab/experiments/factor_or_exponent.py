"""Does the encoding save a factor of updates, or their growth?

With updates to a level ∝ K^a, log2 of vanilla over encoded grows by the difference of the two
exponents per doubling of K: by nothing where the encoding saves the same factor everywhere.

Source: ours; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import CORES, LABELS, labels
from .experiment import Experiment, FigureLayout
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, encodings, grid
from .learning_rate import COLUMN, PLACE
from .predicates import PLANNED, Claim, Contrast, Equivalent, pace_column, with_primary
from .temperature import (
    BATCH,
    COLD,
    DEMO_PACED,
    GAIN,
    HOT,
    LEVEL,
    PAPER_PACED,
    SMALL_PACED,
    TENTH,
    either,
    gain_grows,
)

VOCABULARIES = {"gru": (16, 32, 64, 128), "lstm": (64, 128, 256, 512)}
CELLS = {"hot": HOT, "cold": COLD}
EARLY = 0.5
"""What every network reaches: the hot vanilla LSTM never has 0.9 at the largest K."""


def _specs(
    base: Settings,
    vocabularies: Mapping[str, Sequence[int]],
    seeds: Sequence[int],
    divisor: int = 1,
) -> tuple[RunSpec, ...]:
    conditions = [
        {"core.kind": core, "task.vocab_size": size, COLUMN: rate / divisor, BATCH: batch}
        for rate, batch in CELLS.values()
        for core, sizes in vocabularies.items()
        for size in sizes
    ]
    return grid(base, conditions, encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return _specs(DEMO_PACED, {"gru": (8, 12, 16), "lstm": (8, 16, 32)}, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for a night on two CPU cores.

    The GRU at K = 64 is that of `temperature`.
    """
    return _specs(SMALL_PACED, VOCABULARIES, SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """Return the published sizes, for GPUs."""
    sizes = {"gru": (16, 64, 256), "lstm": (256, 1_024, 4_096)}
    return _specs(PAPER_PACED, sizes, SEEDS, TENTH)


def _grows(core: str, cell: str, level: float = LEVEL) -> Claim:
    suffix = "" if level == LEVEL else f"_at_{level:g}"
    return Claim(
        name=f"gain_grows_when_{cell}_{core}{suffix}",
        statement=f"At the {cell} cell the {CORES[core]}'s updates to {level} grow faster with the "
        "vocabulary without the encoding than with it (our check).",
        source=PLACE,
        predicate=gain_grows(
            "task.vocab_size", {"core.kind": core, **either(CELLS[cell][0])}, level=level
        ),
    )


def _same_factor(cell: str) -> Claim:
    smallest, *_, largest = VOCABULARIES["gru"]
    return Claim(
        name=f"same_factor_when_{cell}_gru",
        statement=f"At the {cell} cell the encoding saves the GRU the same factor of updates to "
        f"{LEVEL} at K = {largest} as at {smallest} (our check).",
        source=PLACE,
        predicate=Equivalent(
            pace_column(LEVEL),
            {"core.kind": "gru", **either(CELLS[cell][0])},
            GAIN,
            BATCH,
            PLANNED,
            margin=0.6,
            margin_origin="ours: a difference of exponents of 0.2 over three doublings, a third of "
            "the LSTM's published 0.64",
            between=Contrast("task.vocab_size", treated=largest, baseline=smallest),
        ),
    )


FIGURE = FigureLayout(
    x="task.vocab_size",
    panels=("core.kind", COLUMN),
    lines="encoding.kind",
    metrics=tuple(pace_column(level) for level in (0.5, 0.8, LEVEL)),
    contrast=ENCODING,
    x_base=2,
    form="factors",
)

EXPERIMENT = Experiment(
    name="factor_or_exponent",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *(_grows(core, cell) for core in ("lstm", "gru") for cell in CELLS),
            *(_grows("lstm", cell, EARLY) for cell in CELLS),
            *(_same_factor(cell) for cell in CELLS),
        ),
        "gain_grows_when_hot_lstm",
        "gain_grows_when_cold_lstm",
    ),
    figure=FIGURE,
    more_figures={
        "updates": replace(FIGURE, form="points", contrast=None, y_base=2),
        "accuracy": replace(FIGURE, form="points", metrics=("token_accuracy",)),
    },
    labels={
        **labels(FIGURE, "gru", "lstm", "none", "sinusoidal"),
        "token_accuracy": LABELS["token_accuracy"],
        "updates": "Updates to each accuracy: the slopes are the exponents",
        "accuracy": "Final accuracy of the same trials",
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
