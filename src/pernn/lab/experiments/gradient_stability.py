"""Do rare tokens turn the gradients of networks without an encoding?

The trainings are those of `dual_frequency`: whoever has run it has only the analysis left to do.

After equally many updates the encoded network is ahead, and so may be its gradients for that reason
alone. In `descent` they are compared in the checkpoints nearest to three levels of training
accuracy, and within each training with the next fall of the loss.

Source: Morita (2024), versions 2 and 3, section 2.3 and figure 5; version 5, section 4.3,
for S4D; `descent` is ours.
"""

from functools import partial

from pernn.lab.runs import RunSpec

from .comparisons import (
    ACCURACY,
    LABELS,
    OURS,
    PAPER_SETTING,
    claims_about,
    encoding_helps,
    falls,
    lay_out,
    named,
)
from .dual_frequency import CONDITIONS, DISTURBANTS, DUAL_FREQUENCY, KINDS
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODED,
    ENCODING,
    MASTERY_TRAINING,
    RATE,
    SMALL_PACED,
    UPDATES,
    VANILLA,
    VOCABULARY,
    Settings,
    at,
    brief,
    cores,
    grids,
    kinds,
    widths,
)
from .predicates import (
    PLANNED,
    AtLeast,
    Claim,
    Differs,
    DiffersMore,
    Equivalent,
    Place,
    with_primary,
)
from .temperature import ENDS, either

TABLE = "gradient_stability"
EARLY = tuple(range(1, 21))
"""Percent of the training that count as its beginning."""
TRAINED = tuple(range(1, 101))
"""Percent of the training, the untrained network left out."""
HIGH = 0.5
"""A similarity that counts as high: halfway between unrelated, 0, and equal, 1."""
MARGINAL = 0.1
"""A difference of similarities that counts as marginal."""
FIRST, LATER = (5_000, 10_000), tuple(range(15_000, 300_001, 5_000))
"""Updates before and after the one from which on version 5 sees no difference for S4D."""
V5 = Place("v5", "section 4.3")
SOURCE = (Place("v3", "section 2.3 and Fig. 5"), V5)


def _analysed(scale: str, s4d_source_step: int = 1, **config: int) -> tuple[RunSpec, ...]:
    """Put an analysis behind every training; S4D's target stands behind a shared prefix."""
    steps = {"s4d": s4d_source_step}
    return tuple(
        spec.override({"analysis": {"source_step": steps.get(spec.core.kind, 1), **config}})
        for spec in DUAL_FREQUENCY.scales[scale]()
    )


of_both = partial(claims_about, conditions=kinds("gru", "lstm"), source=SOURCE, table=TABLE)
of_s4d = partial(claims_about, conditions=kinds("s4d"), source=V5, table=TABLE)


def _falls(core: str, how: str) -> list[Claim]:
    return of_both(
        "falls_{core}",
        "The vanilla {core}'s similarity among Rare disturbants falls during training (the text: "
        f"{how}), for Frequent targets",
        lambda here: falls(
            {**here, **VANILLA, "condition": "Frequent among Rare", "percent": TRAINED},
            "similarity",
            "update",
        ),
        conditions=kinds(core),
    )


def _stable(target: str) -> list[Claim]:
    return of_s4d(
        f"vanilla_stable_{{core}}_{target.lower()}",
        "Throughout the training the vanilla {core} is highly stable among Rare disturbants, for "
        f"{target} targets",
        lambda here: AtLeast(
            "similarity",
            {**PAPER_SETTING, **here, **VANILLA, "condition": f"{target} among Rare"},
            "update",
            (*FIRST, *LATER),
            HIGH,
            OURS,
        ),
    )


CLAIMS = (
    *of_both(
        "rare_disturbants_destabilise_{core}",
        "After training, Rare disturbants lower the vanilla {core}'s similarity",
        lambda here: Differs(
            "similarity", {**here, **VANILLA, "percent": 100}, DISTURBANTS, "target", sign=-1
        ),
    ),
    *_falls("gru", "gradually"),
    *_falls("lstm", "rapidly"),
    *of_both(
        "rapidly_{core}",
        "In the first fifth of the training, Rare disturbants already lower the vanilla {core}'s "
        "similarity for Frequent targets (our reading of a rapid fall)",
        lambda here: Differs(
            "similarity",
            {**here, **VANILLA, "target": "Frequent", "percent": EARLY},
            DISTURBANTS,
            cells="update",
            sign=-1,
        ),
        conditions=kinds("lstm"),
    ),
    *of_both(
        "encoding_stabilises_{core}",
        "After training, the encoding raises the {core}'s similarity among Rare disturbants",
        lambda here: Differs(
            "similarity", {**here, "disturbants": "Rare", "percent": 100}, ENCODING, "target"
        ),
    ),
    *of_both(
        "encoded_stays_high_{core}",
        "After training, the encoded {core}'s similarity is high in all four conditions",
        lambda here: AtLeast(
            "similarity",
            {**PAPER_SETTING, **here, **ENCODED, "percent": 100},
            "condition",
            CONDITIONS,
            HIGH,
            OURS,
        ),
    ),
    *_stable("Frequent"),
    *_stable("Rare"),
    *of_s4d(
        "encoding_marginal_{core}",
        "After training, the encoding changes the {core}'s similarity marginally in every "
        "condition",
        lambda here: Equivalent(
            "similarity",
            {**here, "percent": 100},
            ENCODING,
            "condition",
            CONDITIONS,
            MARGINAL,
            OURS,
        ),
    ),
    *of_s4d(
        "early_{core}",
        "Up to update 10,000, Rare disturbants lower the vanilla {core}'s similarity for Frequent "
        "targets",
        lambda here: Differs(
            "similarity",
            {**PAPER_SETTING, **here, **VANILLA, "target": "Frequent", "update": FIRST},
            DISTURBANTS,
            "update",
            FIRST,
            sign=-1,
        ),
    ),
    *of_s4d(
        "encoding_helps_early_{core}",
        "Up to update 10,000, the encoding raises the {core}'s similarity among Rare disturbants, "
        "for Frequent targets",
        lambda here: Differs(
            "similarity",
            {**PAPER_SETTING, **here, "condition": "Frequent among Rare", "update": FIRST},
            ENCODING,
            "update",
            FIRST,
        ),
    ),
    *of_s4d(
        "difference_gone_{core}",
        "After update 10,000, Rare and Frequent disturbants differ marginally in the vanilla "
        "{core}'s similarity, for Frequent targets",
        lambda here: Equivalent(
            "similarity",
            {**PAPER_SETTING, **here, **VANILLA, "target": "Frequent", "update": LATER},
            DISTURBANTS,
            "update",
            LATER,
            MARGINAL,
            OURS,
        ),
    ),
)

GRADIENT_STABILITY = Experiment(
    name="gradient_stability",
    scales={
        # Minutes, and an hour or two, on two CPU cores; every 5,000 updates, for GPUs.
        "demo": lambda: _analysed("demo", num_per_condition=16, map_per_condition=2),
        "small": lambda: _analysed("small", 3, num_per_condition=128, map_per_condition=16),
        "paper": lambda: _analysed("paper", 23, num_per_condition=256),
    },
    claims=with_primary(CLAIMS, "rare_disturbants_destabilise_*", "encoding_stabilises_*"),
    figure=lay_out(
        "update",
        "similarity",
        panels="encoding.kind",
        rows="core.kind",
        lines="condition",
        contrast=None,
        table=TABLE,
        form="bands",
    ),
    more_figures={
        "difference": lay_out(
            "update",
            "similarity",
            rows=("target",),
            lines=("disturbants", "encoding.kind"),
            contrast=DISTURBANTS,
            table=TABLE,
            form="difference",
        ),
        "map": lay_out(
            "update",
            "similarity",
            panels="condition",
            rows=("core.kind", "encoding.kind"),
            lines="position",
            contrast=None,
            table="stability_map",
            form="heat",
        ),
        "accuracy": lay_out("similarity_rare_disturbants", ACCURACY, contrast=None, form="scatter"),
    },
    labels={
        "update": LABELS["update"],
        "position": "Position of the target, t",
        "difference": "How do Rare disturbants change the similarity?",
        "map": "At which positions are the gradients stable, and when?",
        "accuracy": "Are trials with stable gradients the accurate ones?",
        "similarity_rare_disturbants": "Similarity among Rare disturbants",
        ACCURACY: LABELS[ACCURACY],
        "condition": "Target among disturbants",
        **named("core.kind", *KINDS, "encoding.kind", "none", "sinusoidal", "similarity"),
    },
)

LONGER_GRADIENTS = Experiment(
    name="longer_gradients",
    scales=grids(
        {"task.kind": "dual_frequency"},
        demo=(
            {
                **brief(length=16, size=64, updates=1_200),
                "training.keep_interval": 400,
                "analysis": {"num_per_condition": 16},
            },
            cores(gru=4, lstm=4),
        ),
        # An hour or two on two CPU cores.
        small=(
            {
                "task.length": 32,
                "task.num_per_cell": 64,
                **widths(64),
                **MASTERY_TRAINING,
                UPDATES: 40_000,
                "training.keep_interval": 5_000,
                "analysis": {"num_per_condition": 128},
            },
            cores(gru=4, lstm=4),
        ),
    ),
    claims=with_primary(
        (
            *of_both(
                "mends_more_{core}",
                "After training, the encoding raises the {core}'s similarity more among Rare "
                "disturbants than among Frequent ones",
                lambda here: DiffersMore(
                    "similarity", {**here, "percent": 100}, ENCODING, DISTURBANTS, "target"
                ),
                ours=True,
            ),
            *(
                claim
                for claim in CLAIMS
                if claim.name.startswith(("rare_disturbants_destabilise_", "encoding_stabilises_"))
            ),
            *(encoding_helps(core, SOURCE) for core in ("gru", "lstm")),
        ),
        "mends_more_*",
    ),
    figure=GRADIENT_STABILITY.figure,
    more_figures={
        name: GRADIENT_STABILITY.more_figures[name] for name in ("difference", "accuracy")
    },
    labels=GRADIENT_STABILITY.labels,
    rules={"demo": "2026-12", "small": "2026-12"},
)

AT_LEVELS = "at_levels"


def _lasting(**cells: tuple[int, int]) -> list[Settings]:
    """Make one condition per cell, of its updates in all and between checkpoints."""
    return [
        {
            **at(ENDS[cell]),
            UPDATES: updates,
            "training.checkpoint_interval": interval,
            "training.keep_interval": interval,
        }
        for cell, (updates, interval) in cells.items()
    ]


def _claims(cell: str) -> list[Claim]:
    here: Settings = {"core.kind": "lstm", **either(ENDS[cell][0])}
    about = partial(claims_about, conditions=[here], source=SOURCE[0], ours=True, cell=cell)
    equal = "At the {cell} cell at equal accuracy"
    return [
        *about(
            "similarity_when_{cell}",
            f"{equal} the encoding raises the {{core}}'s similarity among Rare disturbants",
            lambda here: Differs("similarity", {**here, "disturbants": "Rare"}, ENCODING, "level"),
            table=AT_LEVELS,
        ),
        *about(
            "noise_when_{cell}",
            f"{equal} the encoded {{core}}'s gradients are less noisy than the vanilla one's",
            lambda here: Differs(
                "noise_scale", {**here, "disturbants": "Rare"}, ENCODING, "level", sign=-1
            ),
            table=AT_LEVELS,
        ),
        *about(
            "rare_when_{cell}",
            f"{equal} Rare disturbants lower the vanilla {{core}}'s similarity",
            lambda here: Differs("similarity", {**here, **VANILLA}, DISTURBANTS, "level", sign=-1),
            table=AT_LEVELS,
        ),
        *(
            claim
            for kind, name in (("none", "vanilla"), ("sinusoidal", "encoded"))
            for claim in about(
                f"lead_{name}_when_{{cell}}",
                "At the {cell} cell the {encoding} {core}'s similarity precedes the next fall of "
                "its loss, beyond the loss",
                lambda here: AtLeast(
                    "lead", here, VOCABULARY, PLANNED, 0.0, "ours: no partial correlation"
                ),
                conditions=[{**here, "encoding.kind": kind}],
            )
        ),
    ]


DESCENT = Experiment(
    name="descent",
    scales=grids(
        {"task.kind": "dual_frequency", "core.kind": "lstm"},
        demo=(
            {
                **DEMO_PACED,
                "task.length": 6,
                VOCABULARY: 8,
                "task.num_per_cell": 4,
                "analysis": {"kind": "descent", "num_per_condition": 4, "num_batches": 8},
            },
            _lasting(hot=(600, 100), cold=(600, 100)),
        ),
        # An hour on two CPU cores.
        small=(
            {
                **SMALL_PACED,
                "task.length": 16,
                VOCABULARY: 64,
                **widths(128),
                "analysis": {"kind": "descent"},
            },
            _lasting(hot=(4_800, 200), cold=(8_000, 400)),
        ),
    ),
    claims=with_primary(
        [claim for cell in ENDS for claim in _claims(cell)], "similarity_*", "lead_vanilla_*"
    ),
    figure=lay_out(
        "level",
        "similarity",
        "noise_scale",
        "loss",
        panels=(RATE, "disturbants"),
        contrast=None,
        table=AT_LEVELS,
    ),
    labels={
        **named(RATE, "disturbants", "encoding.kind", "none", "sinusoidal", "similarity"),
        "level": "Training accuracy",
        "loss": "Loss of fresh sequences",
        "noise_scale": "log2 of the noise scale, sequences",
        "lead": "Partial correlation with the next fall of the loss",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
