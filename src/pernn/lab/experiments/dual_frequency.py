"""Are rare targets hard, or rare tokens beside the target?

Checkpoints are kept for `gradient_stability`, which analyses the same runs.

Source: Morita (2024), versions 2 and 3, section 2.2 and figure 3; version 5, sections 4.2
and 4.3, for S4D.
"""

from pernn.lab.runs import RunSpec

from .comparisons import CORES, OURS, PAPER_SETTING, Source, named
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    MASTERY_TRAINING,
    SMALL_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .predicates import AtLeast, AtMost, Claim, Contrast, Differs, DiffersMore, Place, with_primary

VOCABULARIES = {"gru": 64, "lstm": 1024, "s4d": 2048}
CONDITIONS = tuple(f"{a} among {b}" for a in ("Frequent", "Rare") for b in ("Frequent", "Rare"))
DISTURBANTS = Contrast("disturbants", treated="Rare", baseline="Frequent")
TARGET = Contrast("target", treated="Rare", baseline="Frequent")
SWAPPED = Contrast("condition", treated="Rare among Frequent", baseline="Frequent among Rare")
NEARLY_PERFECT = 0.95
"""The text calls the encoded networks nearly perfect and gives no number; this is our reading."""
FEW_POINTS = 0.05
"""Rare targets are retrieved if they lose less than this; the text gives no number either."""
SOURCE = (Place("v3", "section 2.2 and Fig. 3"), Place("v5", "section 4.2"))
S4D_SOURCE = Place("v5", "section 4.2")
POOREST = 23
"""Where version 5 finds the vanilla S4D model poorest among Rare disturbants."""


def _cores(**vocabularies: int) -> list[Settings]:
    """Make one condition per core, each with a vocabulary of its own."""
    return [{"core.kind": core, "task.vocab_size": size} for core, size in vocabularies.items()]


def demo() -> tuple[RunSpec, ...]:
    """Return trials for minutes on two CPU cores.

    Inputs are short and ids few, so that Rare ones are learnt at all.
    """
    return grid(
        {
            "task.kind": "dual_frequency",
            "task.length": 12,
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 1_800,
            "training.keep_interval": 250,
        },
        _cores(gru=8, lstm=8),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores.

    They were chosen as docs/evidence/plan.md says.
    """
    return grid(
        {
            "task.kind": "dual_frequency",
            "task.length": 8,
            "task.num_per_cell": 64,
            **widths(64),
            **MASTERY_TRAINING,
            # Of the checkpoints that are written, every 5,000 updates, all are kept.
            "training.keep_interval": 2_500,
        },
        _cores(gru=64, lstm=256, s4d=256),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    kept = {"training.keep_interval": 5_000}
    return grid({"task.kind": "dual_frequency", **kept}, _cores(**VOCABULARIES), encodings())


def _vanilla(core: str) -> Settings:
    return {"core.kind": core, "encoding.kind": ENCODING.baseline}


def _source(core: str) -> Source:
    return S4D_SOURCE if core == "s4d" else SOURCE


def _disturb(core: str) -> Claim:
    return Claim(
        name=f"disturbants_matter_{core}",
        statement=f"Rare disturbants lower the vanilla {CORES[core]}'s accuracy.",
        source=_source(core),
        predicate=Differs("token_accuracy", _vanilla(core), DISTURBANTS, "target", sign=-1),
        table="by_condition",
    )


def _outweigh(core: str) -> Claim:
    return Claim(
        name=f"disturbants_outweigh_target_{core}",
        statement=f"The vanilla {CORES[core]} retrieves Rare targets among Frequent disturbants "
        "better than Frequent targets among Rare ones.",
        source=_source(core),
        predicate=Differs("token_accuracy", _vanilla(core), SWAPPED, "core.kind"),
        table="by_condition",
    )


def _retrieved(core: str) -> Claim:
    return Claim(
        name=f"rare_target_retrieved_{core}",
        statement=f"Among Frequent disturbants the vanilla {CORES[core]} retrieves Rare targets "
        "too: it loses less than five points on them.",
        source=_source(core),
        predicate=Differs(
            "token_accuracy",
            {**_vanilla(core), "disturbants": "Frequent"},
            TARGET,
            "disturbants",
            margin=-FEW_POINTS,
            margin_origin=OURS,
        ),
        table="by_condition",
    )


def _worst(core: str, quarter: int, place: str, other: int) -> Claim:
    return Claim(
        name=f"worst_in_quarter_{quarter}_not_{other}_{core}",
        statement=f"Among Rare disturbants the vanilla {CORES[core]} is worse on targets in "
        f"quarter {quarter} of the input ({place} at L = 64) than in quarter {other}.",
        source=_source(core),
        predicate=Differs(
            "token_accuracy",
            {**_vanilla(core), "disturbants": "Rare"},
            Contrast("quarter", treated=quarter, baseline=other),
            "target",
            sign=-1,
        ),
        table="by_quarter",
    )


def _resists(core: str) -> Claim:
    return Claim(
        name=f"encoding_gives_resilience_{core}",
        statement=f"Rare disturbants cost the encoded {CORES[core]} less accuracy than the vanilla "
        "one.",
        source=_source(core),
        predicate=DiffersMore(
            "token_accuracy", {"core.kind": core}, DISTURBANTS, ENCODING, cells="target"
        ),
        table="by_condition",
    )


def _poorest(other: int) -> Claim:
    return Claim(
        name=f"poorest_at_{POOREST}_not_{other}_s4d",
        statement=f"Among Rare disturbants the vanilla S4D model is poorest at t = {POOREST}: "
        f"worse than at t = {other}, where the worst quarter of the input "
        f"{'begins' if other < POOREST else 'ends'}.",
        source=Place("v5", "section 4.3"),
        predicate=Differs(
            "token_accuracy",
            {**PAPER_SETTING, **_vanilla("s4d"), "disturbants": "Rare"},
            Contrast("position", treated=POOREST, baseline=other),
            "target",
            sign=-1,
        ),
        table="by_position",
    )


def _near_perfect(core: str) -> Claim:
    required = tuple(name for name in CONDITIONS if core != "gru" or name != "Rare among Rare")
    number = "three conditions that are not all Rare" if core == "gru" else "four conditions"
    return Claim(
        name=f"encoded_nearly_perfect_{core}",
        statement=f"The encoded {CORES[core]} is nearly perfect, 95 % or more, in each of the "
        f"{number}.",
        source=_source(core),
        predicate=AtLeast(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": ENCODING.treated},
            cells="condition",
            required=required,
            threshold=NEARLY_PERFECT,
            threshold_origin=OURS,
        ),
        table="by_condition",
    )


def _all_rare(bound: type[AtLeast | AtMost], name: str, quarters: tuple[int, int]) -> Claim:
    verb = "reaches" if bound is AtLeast else "stays below"
    place = "t > 32" if quarters == (3, 4) else "t ≤ 32"
    return Claim(
        name=f"{name}_gru",
        statement=f"The encoded GRU {verb} 95 % on sequences that are all Rare where {place}.",
        source=SOURCE,
        predicate=bound(
            "token_accuracy",
            {
                **PAPER_SETTING,
                "core.kind": "gru",
                "encoding.kind": ENCODING.treated,
                "condition": "Rare among Rare",
            },
            cells="quarter",
            required=quarters,
            threshold=NEARLY_PERFECT,
            threshold_origin=OURS,
        ),
        table="by_quarter",
    )


def _first_kept(encoding: str) -> Claim:
    which = "vanilla" if encoding == ENCODING.baseline else "encoded"
    return Claim(
        name=f"first_target_kept_s4d_{encoding}",
        statement=f"The {which} S4D model reaches 96 % on targets at t = 1 in every condition.",
        source=Place("v5", "section 4.3"),
        predicate=AtLeast(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": "s4d", "encoding.kind": encoding, "position": 1},
            cells="condition",
            required=CONDITIONS,
            threshold=0.96,
            threshold_origin="the text's",
        ),
        table="by_position",
    )


EXPERIMENT = Experiment(
    name="dual_frequency",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *map(_disturb, VOCABULARIES),
            *map(_outweigh, VOCABULARIES),
            *map(_retrieved, VOCABULARIES),
            Claim(
                name="frequent_targets_lost_gru",
                statement="Among Rare disturbants the vanilla GRU loses Frequent targets.",
                source=SOURCE,
                predicate=Differs(
                    "token_accuracy",
                    {**_vanilla("gru"), "target": "Frequent"},
                    DISTURBANTS,
                    "position",
                    sign=-1,
                ),
                table="by_position",
            ),
            *(_worst("lstm", 1, "t = 1 … 16", other) for other in (2, 3, 4)),
            *(_worst("s4d", 2, "t = 17 … 32", other) for other in (1, 3, 4)),
            *(_first_kept(encoding) for encoding in ("none", "sinusoidal")),
            *(_poorest(other) for other in (17, 32)),
            *map(_resists, VOCABULARIES),
            *map(_near_perfect, ("gru", "lstm")),
            _all_rare(AtLeast, "encoded_late_all_rare", (3, 4)),
            _all_rare(AtMost, "encoded_early_all_rare", (1, 2)),
        ),
        "disturbants_matter_gru",
        "disturbants_matter_lstm",
        "encoding_gives_resilience_gru",
        "encoding_gives_resilience_lstm",
    ),
    figure=FigureLayout(
        x="position",
        panels="condition",
        lines="encoding.kind",
        metrics=("token_accuracy",),
        rows="core.kind",
        table="by_position",
        form="bands",
    ),
    labels={
        "position": "Position of the target, t",
        "condition": "Target among disturbants",
        **named(
            "core.kind", *VOCABULARIES, "encoding.kind", "none", "sinusoidal", "token_accuracy"
        ),
    },
)
