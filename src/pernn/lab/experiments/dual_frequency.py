"""Are rare targets hard, or rare tokens beside the target?

Checkpoints are kept for `gradient_stability`, which analyses the same runs.

Source: Morita (2024), versions 2 and 3, section 2.2 and figure 3; version 5, sections 4.2
and 4.3, for S4D.
"""

from functools import partial

from .comparisons import ACCURACY, OURS, PAPER_SETTING, Source, claims_about, lay_out, named
from .experiment import Experiment
from .grids import (
    ENCODED,
    ENCODING,
    MASTERY,
    VANILLA,
    brief,
    cores,
    crossed,
    encodings,
    grids,
    kinds,
)
from .predicates import AtLeast, AtMost, Claim, Contrast, Differs, DiffersMore, Place, with_primary

KINDS = ("gru", "lstm", "s4d")
CONDITIONS = tuple(f"{a} among {b}" for a in ("Frequent", "Rare") for b in ("Frequent", "Rare"))
DISTURBANTS = Contrast("disturbants", treated="Rare", baseline="Frequent")
TARGET = Contrast("target", treated="Rare", baseline="Frequent")
SWAPPED = Contrast("condition", treated="Rare among Frequent", baseline="Frequent among Rare")
NEARLY_PERFECT = 0.95
"""The text calls the encoded networks nearly perfect and gives no number; this is our reading."""
FEW_POINTS = 0.05
"""Rare targets are retrieved if they lose less than this; the text gives no number either."""
SOURCE = (Place("v3", "section 2.2 and Fig. 3"), Place("v5", "section 4.2"))
SOURCES: dict[str, Source] = {"gru": SOURCE, "lstm": SOURCE, "s4d": Place("v5", "section 4.2")}
PLACES = Place("v5", "section 4.3")
POOREST = 23
"""Where version 5 finds the vanilla S4D model poorest among Rare disturbants."""


AMONG_RARE = {**VANILLA, "disturbants": "Rare"}
ALL_RARE = {**PAPER_SETTING, "core.kind": "gru", **ENCODED, "condition": "Rare among Rare"}


def _worst(core: str, quarter: int, place: str, other: int) -> list[Claim]:
    return claims_about(
        f"worst_in_quarter_{quarter}_not_{other}_{{core}}",
        f"Among Rare disturbants the vanilla {{core}} is worse on targets in quarter {quarter} of "
        f"the input ({place} at L = 64) than in quarter {other}",
        Differs(ACCURACY, AMONG_RARE, Contrast("quarter", quarter, other), "target", sign=-1),
        kinds(core),
        SOURCES,
        table="by_quarter",
    )


def _poorest(other: int, end: str) -> list[Claim]:
    return claims_about(
        f"poorest_at_{POOREST}_not_{other}_{{core}}",
        f"Among Rare disturbants the vanilla {{core}} is poorest at t = {POOREST}: worse than at "
        f"t = {other}, where the worst quarter of the input {end}",
        Differs(ACCURACY, AMONG_RARE, Contrast("position", POOREST, other), "target", sign=-1),
        crossed([PAPER_SETTING], kinds("s4d")),
        PLACES,
        table="by_position",
    )


def _near_perfect(core: str, conditions: tuple[str, ...], number: str) -> list[Claim]:
    return claims_about(
        "encoded_nearly_perfect_{core}",
        f"The encoded {{core}} is nearly perfect, 95 % or more, in each of the {number}",
        AtLeast(ACCURACY, ENCODED, "condition", conditions, NEARLY_PERFECT, OURS),
        crossed([PAPER_SETTING], kinds(core)),
        SOURCE,
        table="by_condition",
    )


of_each = partial(claims_about, conditions=kinds(*KINDS), source=SOURCES, table="by_condition")
CLAIMS = (
    *of_each(
        "disturbants_matter_{core}",
        "Rare disturbants lower the vanilla {core}'s accuracy",
        Differs(ACCURACY, VANILLA, DISTURBANTS, "target", sign=-1),
    ),
    *of_each(
        "disturbants_outweigh_target_{core}",
        "The vanilla {core} retrieves Rare targets among Frequent disturbants better than Frequent "
        "targets among Rare ones",
        Differs(ACCURACY, VANILLA, SWAPPED, "core.kind"),
    ),
    *of_each(
        "rare_target_retrieved_{core}",
        "Among Frequent disturbants the vanilla {core} retrieves Rare targets too: it loses less "
        "than five points on them",
        Differs(
            ACCURACY,
            {**VANILLA, "disturbants": "Frequent"},
            TARGET,
            "disturbants",
            margin=-FEW_POINTS,
            margin_origin=OURS,
        ),
    ),
    *of_each(
        "frequent_targets_lost_{core}",
        "Among Rare disturbants the vanilla {core} loses Frequent targets",
        Differs(ACCURACY, {**VANILLA, "target": "Frequent"}, DISTURBANTS, "position", sign=-1),
        conditions=kinds("gru"),
        table="by_position",
    ),
    *(claim for other in (2, 3, 4) for claim in _worst("lstm", 1, "t = 1 … 16", other)),
    *(claim for other in (1, 3, 4) for claim in _worst("s4d", 2, "t = 17 … 32", other)),
    *claims_about(
        "first_target_kept_{core}_{encoding}",
        "The {encoding} {core} reaches 96 % on targets at t = 1 in every condition",
        AtLeast(ACCURACY, {"position": 1}, "condition", CONDITIONS, 0.96, "the text's"),
        crossed([PAPER_SETTING], kinds("s4d"), encodings()),
        PLACES,
        table="by_position",
    ),
    *_poorest(17, "begins"),
    *_poorest(32, "ends"),
    *of_each(
        "encoding_gives_resilience_{core}",
        "Rare disturbants cost the encoded {core} less accuracy than the vanilla one",
        DiffersMore(ACCURACY, {}, DISTURBANTS, ENCODING, "target"),
    ),
    *_near_perfect("gru", CONDITIONS[:3], "three conditions that are not all Rare"),
    *_near_perfect("lstm", CONDITIONS, "four conditions"),
    Claim(
        "encoded_late_all_rare_gru",
        "The encoded GRU reaches 95 % on sequences that are all Rare where t > 32.",
        SOURCE,
        AtLeast(ACCURACY, ALL_RARE, "quarter", (3, 4), NEARLY_PERFECT, OURS),
        "by_quarter",
    ),
    Claim(
        "encoded_early_all_rare_gru",
        "The encoded GRU stays below 95 % on sequences that are all Rare where t ≤ 32.",
        SOURCE,
        AtMost(ACCURACY, ALL_RARE, "quarter", (1, 2), NEARLY_PERFECT, OURS),
        "by_quarter",
    ),
)

PRIMARY = ("disturbants_matter", "encoding_gives_resilience")

DUAL_FREQUENCY = Experiment(
    name="dual_frequency",
    scales=grids(
        {"task.kind": "dual_frequency"},
        # Minutes on two CPU cores, few ids: else Rare ones are not learnt at all.
        demo=(
            {**brief(length=12, size=128, updates=1_800), "training.keep_interval": 250},
            cores(gru=8, lstm=8),
        ),
        # An hour or two on two CPU cores; chosen as docs/evidence/plan.md says.
        small=(
            {
                **MASTERY,
                "task.num_per_cell": 64,
                # Of the checkpoints that are written, every 5,000 updates, all are kept.
                "training.keep_interval": 2_500,
            },
            cores(gru=64, lstm=256, s4d=256),
        ),
        paper=({"training.keep_interval": 5_000}, cores(gru=64, lstm=1024, s4d=2048)),
    ),
    claims=with_primary(
        CLAIMS, *(f"{name}_{core}" for name in PRIMARY for core in ("gru", "lstm"))
    ),
    figure=lay_out(
        "position",
        ACCURACY,
        panels="condition",
        rows="core.kind",
        contrast=None,
        table="by_position",
        form="bands",
    ),
    labels={
        "position": "Position of the target, t",
        "condition": "Target among disturbants",
        **named("core.kind", *KINDS, "encoding.kind", "none", "sinusoidal", ACCURACY),
    },
)
