"""Is the encoding needed early, late, or for every answer?

The encoding is there always, never, for the first updates alone, for the second half alone, or
until it is withdrawn from the trained network.

Source: ours; the question is that of Morita (2024), version 3, figure 2.
"""

from functools import partial

from .comparisons import ACCURACY, OURS, PLACE, claims_about, labels, lay_out
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODED,
    HOT,
    PAPER_PACED,
    SMALL_PACED,
    TENTH,
    VANILLA,
    VOCABULARY,
    at,
    cores,
    encodings,
    grids,
    kinds,
)
from .predicates import Claim, Contrast, Differs, with_primary

WHEN = "training.encoding_schedule"
ARMS = {"early": "Faded out", "late": "Second half", "withdrawn": "Withdrawn at the end"}
COLLAPSE = 0.1
"""A loss of token accuracy of more than this counts as a collapse."""


def _against_never(when: str) -> Contrast:
    return Contrast(WHEN, when, None, treated_where=ENCODED, baseline_where=VANILLA)


ours = partial(claims_about, source=PLACE, ours=True)


def _primary(core: str) -> list[Claim]:
    return [
        *ours(
            "collapses_when_withdrawn_{core}",
            "Without the encoding that it was trained with, the {core} loses more than "
            f"{COLLAPSE:g} of token accuracy",
            Differs(
                ACCURACY,
                ENCODED,
                Contrast(WHEN, "withdrawn", None),
                VOCABULARY,
                sign=-1,
                margin=COLLAPSE,
                margin_origin=OURS,
            ),
            kinds(core),
        ),
        *ours(
            "early_helps_{core}",
            "An encoding that is gone after half of the updates leaves the {core} above the "
            "vanilla one",
            Differs(ACCURACY, {}, _against_never("early"), VOCABULARY),
            kinds(core),
        ),
    ]


def _others(core: str) -> list[Claim]:
    return [
        *ours(
            "late_helps_{core}",
            "An encoding in the second half alone leaves the {core} above the vanilla one",
            Differs(ACCURACY, {}, _against_never("late"), VOCABULARY),
            kinds(core),
        ),
        *ours(
            "early_is_not_all_{core}",
            "An encoding that is gone after half of the updates leaves the {core} below the "
            "encoded one",
            Differs(ACCURACY, ENCODED, Contrast(WHEN, "early", None), VOCABULARY, sign=-1),
            kinds(core),
        ),
    ]


FIGURE = lay_out(
    "core.kind", ACCURACY, panels="training.schedule", lines=("encoding.kind", WHEN), contrast=None
)

SCAFFOLD = Experiment(
    name="scaffold",
    scales=grids(
        at(HOT),
        [*encodings(), *({**ENCODED, WHEN: when} for when in ARMS)],
        demo=(DEMO_PACED, cores(gru=8, lstm=16)),
        # Two hours on two CPU cores; the arms "always" and "never" are those of `temperature`.
        small=(SMALL_PACED, cores(gru=64, lstm=192)),
        paper=({**PAPER_PACED, **at(HOT, TENTH)}, cores(gru=64, lstm=1_024)),
    ),
    claims=with_primary(
        [claim for make in (_primary, _others) for core in ("lstm", "gru") for claim in make(core)],
        "collapses_*",
        "early_helps_*",
    ),
    figure=FIGURE,
    labels={
        **labels(FIGURE, "gru", "lstm"),
        "constant": "At a constant rate",
        "none, None": "Never",
        "sinusoidal, None": "Always",
        **{f"sinusoidal, {when}": name for when, name in ARMS.items()},
        **ARMS,
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
