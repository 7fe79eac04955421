"""Is it rare tokens, at an equal entropy of the tokens?

The larger a vocabulary of equally likely tokens, the rarer each of them. Under Zipf laws of equal
entropy an input says as much whatever the exponent, and most of a steeper law's ids are rarer.

Source: ours; the question is that of Morita (2024), version 3, figures 2 and 3.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from .comparisons import ACCURACY, LABELS, claims_about, labels, lay_out
from .experiment import Experiment
from .grids import (
    BATCH,
    DEMO_PACED,
    ENCODING,
    RATE,
    SMALL_PACED,
    UPDATES,
    VANILLA,
    VOCABULARY,
    Settings,
    grids,
)
from .predicates import Claim, Contrast, Differs, DiffersMore, Place, with_primary
from .temperature import ENDS, GAIN, LEVEL, PACE, both_cells, either, factors

EXPONENT, TABLE = "task.exponent", "by_rank"
LAWS: Mapping[int, Mapping[float, int]] = {
    16: {0.0: 16, 0.5: 18, 1.0: 28, 1.5: 355},
    96: {0.0: 96, 0.5: 114, 1.0: 376},
}
"""e to the entropy → exponent → the K that comes nearest to it; beyond them none does."""
ENTROPIES = {"gru": 16, "lstm": 96}
DISTURBANTS = Contrast("disturbants", treated="Mostly rare", baseline="Mostly frequent")
SOURCE = (Place("v3", "section 2.1 and Fig. 2"), Place("v3", "section 2.2 and Fig. 3"))


def _laws(core: str, laws: Mapping[float, int], updates: int) -> list[Settings]:
    """Make one condition per law of a core."""
    return [
        {"core.kind": core, EXPONENT: exponent, VOCABULARY: size, UPDATES: updates}
        for exponent, size in laws.items()
    ]


def _claims(core: str, cell: str) -> list[Claim]:
    """Claim of one core at one cell that rare tokens are what the encoding helps with."""
    steepest = max(LAWS[ENTROPIES[core]])
    steep = {EXPONENT: steepest}
    between = Contrast(EXPONENT, treated=steepest, baseline=0.0)
    about = partial(
        claims_about,
        conditions=[{"core.kind": core, **either(ENDS[cell][0])}],
        source=SOURCE,
        ours=True,
        cell=cell,
        law=f"under exponent {steepest:g}",
    )
    return [
        *about(
            "saves_more_when_{cell}_{core}",
            "At the {cell} cell the encoding saves the {core} a larger factor of updates to "
            f"{LEVEL} {{law}} than 0",
            DiffersMore(PACE, {}, GAIN, between, BATCH),
        ),
        *about(
            "gains_more_when_{cell}_{core}",
            "At the {cell} cell the encoding raises the {core}'s final accuracy more {law} than 0",
            DiffersMore(ACCURACY, {}, ENCODING, between, BATCH),
        ),
        *about(
            "disturbants_matter_when_{cell}_{core}",
            "At the {cell} cell {law} the vanilla {core}'s accuracy is lower where the other "
            "tokens are mostly rare",
            Differs(ACCURACY, {**steep, **VANILLA}, DISTURBANTS, "target", sign=-1),
            table=TABLE,
        ),
        *about(
            "encoding_gives_resilience_when_{cell}_{core}",
            "At the {cell} cell {law} mostly rare other tokens cost the encoded {core} less "
            "accuracy than the vanilla one",
            DiffersMore(ACCURACY, steep, DISTURBANTS, ENCODING, "target"),
            table=TABLE,
        ),
    ]


FIGURE = factors(EXPONENT, RATE)

ZIPF = Experiment(
    name="zipf",
    scales=grids(
        {"task.kind": "zipf"},
        demo=(
            DEMO_PACED,
            [*_laws("gru", {0.0: 16, 1.5: 355}, 600), *_laws("lstm", {0.0: 16, 1.0: 28}, 600)],
            both_cells(),
        ),
        # An hour on two CPU cores.
        small=(
            {**SMALL_PACED, "task.num_held_out": 4_096},
            [*_laws("gru", LAWS[16], 10_000), *_laws("lstm", LAWS[96], 16_000)],
            both_cells(),
        ),
    ),
    claims=with_primary(
        [claim for core in ENTROPIES for cell in ENDS for claim in _claims(core, cell)],
        "saves_more_*",
    ),
    figure=FIGURE,
    more_figures={
        "rank": lay_out(
            "target",
            ACCURACY,
            panels=RATE,
            lines=("encoding.kind", "disturbants"),
            contrast=None,
            rows=("core.kind", EXPONENT),
            table=TABLE,
        ),
        "accuracy": replace(FIGURE, form="points", metrics=(ACCURACY,)),
    },
    labels={
        **labels(FIGURE, "gru", "lstm", "none", "sinusoidal"),
        ACCURACY: LABELS[ACCURACY],
        "target": "Rarity of the target, in quarters",
        "disturbants": "Company",
        "rank": "Accuracy by how rare a token and its company are",
        "accuracy": "Final accuracy at the same cells",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
