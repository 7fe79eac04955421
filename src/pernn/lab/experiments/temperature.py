"""Does the encoding pay where the gradients are noisy?

The noise of an update grows with rate / batch, here called the temperature. Three temperatures, two
of them reached in several ways, at a constant rate: what the encoding is worth must follow the
temperature and nothing else if it is that an encoded network bears more of this noise.

`factor_or_exponent`: with updates to a level ∝ K^a, log2 of vanilla over encoded grows by the
difference of the two exponents per doubling of K: by nothing where the encoding saves the same
factor everywhere.

Source: ours; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from .comparisons import ACCURACY, PLACE, WORDS, claims_about, lay_out
from .experiment import Experiment, FigureLayout
from .grids import (
    BATCH,
    COLD,
    DEMO_PACED,
    ENCODING,
    HOT,
    LSTM,
    PAPER_PACED,
    RATE,
    SMALL_PACED,
    TENTH,
    VOCABULARY,
    Cell,
    Settings,
    at,
    cores,
    encodings,
    grids,
    kinds,
)
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

LEVEL = 0.9
PACE = pace_column(LEVEL)
GAIN = Contrast("encoding.kind", treated=ENCODING.baseline, baseline=ENCODING.treated)
"""Of log2 updates: how much longer the vanilla network takes."""

CELLS = (COLD, (0.005, 128), (0.01, 256), (0.005, 64), (0.01, 128), HOT)
"""Three of equal temperature, two of twice that, one of four times."""

ENDS = {"hot": HOT, "cold": COLD}

ONE_BATCH: Mapping[str, Settings] = {
    "gru": {"core.kind": "gru"},
    "lstm": {"core.kind": "lstm", BATCH: COLD[1]},
}
"""Core → what selects its cells of one batch size; the GRU has no others."""


def _conditions(gru: int, lstm: int, divisor: int = 1) -> list[Settings]:
    """Cross cells and encodings: the GRU at one batch size, double embeddings where it is cold."""
    cells = {"gru": [cell for cell in CELLS if cell[1] == COLD[1]], "lstm": CELLS}
    return [
        {**core, **at(cell, divisor), **code}
        for core in cores(gru=gru, lstm=lstm)
        for cell in cells[core["core.kind"]]
        for code in (*encodings(), *encodings("repeated_embedding")[: cell == COLD])
    ]


def either(rate: float) -> Settings:
    """Select a rate of `small`, or that of `paper` in its place."""
    return {RATE: (rate, rate / TENTH)}


WHEN_COLD: Settings = {BATCH: COLD[1], **either(COLD[0])}


def factors(x: str, panel: str, **more: Any) -> FigureLayout:
    """Lay out the factors of updates that the encoding saves."""
    levels = (pace_column(level) for level in (0.5, 0.8, LEVEL))
    return lay_out(x, *levels, panels=("core.kind", panel), form="factors", **more)


HALF = "ours: half of the published log2 factor at the hot cell, at least 1.4"


def _same(cell: Cell, other: Cell) -> Claim:
    (rate, batch), (other_rate, other_batch) = cell, other
    cells = Contrast(BATCH, batch, other_batch, either(rate), either(other_rate))
    return Claim(
        f"same_gain_{rate:g}_{batch}_and_{other_rate:g}_{other_batch}",
        f"At rate {rate:g} and batch {batch} the encoding saves the LSTM the same factor of "
        f"updates to {LEVEL} as at {other_rate:g} and {other_batch}, equally hot (our check).",
        PLACE,
        Equivalent(PACE, LSTM, GAIN, VOCABULARY, PLANNED, 0.7, HALF, cells),
    )


ours = partial(claims_about, conditions=kinds("gru", "lstm"), source=PLACE, ours=True)


def _rises(core: str) -> list[Claim]:
    return ours(
        "gain_rises_with_rate_{core}",
        f"The hotter at equal batches, the larger the factor of updates to {LEVEL} that the "
        "encoding saves the {core}",
        Grows(PACE, {}, GAIN, along=RATE),
        conditions=[ONE_BATCH[core]],
    )


CLAIMS = (
    *_rises("lstm"),
    _same((0.005, 128), COLD),
    _same((0.01, 256), COLD),
    _same((0.01, 128), (0.005, 64)),
    *_rises("gru"),
    *ours(
        "gain_falls_with_batch_{core}",
        "At the highest rate the factor that the encoding saves the {core} falls as the batch "
        "grows",
        Grows(PACE, either(HOT[0]), GAIN, along=BATCH, sign=-1),
        conditions=kinds("lstm"),
    ),
    *ours(
        "accuracy_gain_rises_with_rate_{core}",
        "The hotter at equal batches, the larger the {core}'s gain in final accuracy",
        Grows(ACCURACY, {}, ENCODING, along=RATE),
        conditions=[*ONE_BATCH.values()],
    ),
    *ours(
        "sooner_when_cold_{core}",
        f"The encoding brings the {{core}} to {LEVEL} in fewer updates at the cold cell, too",
        Sooner(LEVEL, WHEN_COLD, ENCODING, VOCABULARY),
    ),
    *ours(
        "sooner_than_double_when_cold_{core}",
        "At the cold cell the encoded {core} is sooner than the double vanilla one",
        Sooner(LEVEL, WHEN_COLD, replace(ENCODING, baseline="repeated_embedding"), VOCABULARY),
    ),
)
FIGURE = factors(RATE, BATCH, x_base=2)

TEMPERATURE = Experiment(
    name="temperature",
    scales=grids(
        {},
        (),
        # Minutes, and an evening, on two CPU cores.
        demo=(DEMO_PACED, _conditions(8, 16)),
        # The networks of the short trainings are trained for twice as long.
        small=(SMALL_PACED, _conditions(64, 192)),
        paper=(PAPER_PACED, _conditions(64, 1_024, TENTH)),
    ),
    claims=with_primary(CLAIMS, "gain_rises_with_rate_lstm", "same_gain_*"),
    figure=FIGURE,
    more_figures={"accuracy": replace(FIGURE, metrics=(ACCURACY,), form="points")},
    labels={"accuracy": "Final accuracy at the same cells"},
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)

VOCABULARIES = {"gru": (16, 32, 64, 128), "lstm": (64, 128, 256, 512)}
THIRD = (
    "ours: a difference of exponents of 0.2 over three doublings, a third of the LSTM's published "
    "0.64"
)
EARLY = 0.5
"""What nearly every network reaches: hot and vanilla, none has 0.9 at the largest K."""


def both_cells(divisor: int = 1) -> list[Settings]:
    """Make one condition per cell."""
    return [at(cell, divisor) for cell in ENDS.values()]


def _grows(core: str, cell: str, level: float = LEVEL) -> Claim:
    suffix = "" if level == LEVEL else f"_at_{level:g}"
    here = {"core.kind": core, **either(ENDS[cell][0])}
    return Claim(
        f"gain_grows_when_{cell}_{core}{suffix}",
        f"At the {cell} cell the {WORDS[core]}'s updates to {level} grow faster with the "
        "vocabulary without the encoding than with it (our check).",
        PLACE,
        Grows(pace_column(level), here, GAIN, along=VOCABULARY),
    )


def _same_factor(cell: str) -> Claim:
    smallest, *_, largest = VOCABULARIES["gru"]
    here = {"core.kind": "gru", **either(ENDS[cell][0])}
    ends = Contrast(VOCABULARY, treated=largest, baseline=smallest)
    return Claim(
        f"same_factor_when_{cell}_gru",
        f"At the {cell} cell the encoding saves the GRU the same factor of updates to {LEVEL} at "
        f"K = {largest} as at {smallest} (our check).",
        PLACE,
        Equivalent(PACE, here, GAIN, BATCH, PLANNED, 0.6, THIRD, ends),
    )


OVER_VOCABULARIES = factors(VOCABULARY, RATE, x_base=2)

EXPONENT_CLAIMS = (
    *(_grows(core, cell) for core in ("lstm", "gru") for cell in ENDS),
    *(_grows(core, cell, EARLY) for core in ("lstm", "gru") for cell in ENDS),
    *(_same_factor(cell) for cell in ENDS),
)

FACTOR_OR_EXPONENT = Experiment(
    name="factor_or_exponent",
    scales=grids(
        {},
        demo=(DEMO_PACED, both_cells(), cores(gru=(8, 12, 16), lstm=(8, 16, 32))),
        # A night on two CPU cores; the GRU at K = 64 is that of `temperature`.
        small=(SMALL_PACED, both_cells(), cores(**VOCABULARIES)),
        paper=(PAPER_PACED, both_cells(TENTH), cores(gru=(16, 64, 128), lstm=(256, 1_024, 4_096))),
    ),
    claims=with_primary(EXPONENT_CLAIMS, "gain_grows_when_*_lstm"),
    figure=OVER_VOCABULARIES,
    more_figures={
        "updates": replace(OVER_VOCABULARIES, form="points", contrast=None, y_base=2),
        "accuracy": replace(OVER_VOCABULARIES, form="points", metrics=(ACCURACY,)),
    },
    labels={
        "updates": "Updates to each accuracy: the slopes are the exponents",
        "accuracy": "Final accuracy of the same trials",
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
