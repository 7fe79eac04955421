"""Do rare tokens turn the gradients of networks without an encoding?

The trainings are those of `dual_frequency`: whoever has run it has only the analysis left to do.

Source: Morita (2024), versions 2 and 3, section 2.3 and figure 5; version 5, section 4.3,
for S4D.
"""

from functools import partial

from pernn.lab.runs import RunSpec

from .comparisons import LABELS, OURS, PAPER_SETTING, claims_about, falls, lay_out, named
from .dual_frequency import CONDITIONS, DISTURBANTS, DUAL_FREQUENCY, KINDS
from .experiment import Experiment
from .grids import ENCODED, ENCODING, VANILLA, kinds
from .predicates import AtLeast, Claim, Differs, Equivalent, Place, with_primary

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
        "accuracy": lay_out(
            "similarity_rare_disturbants", "token_accuracy", contrast=None, form="scatter"
        ),
    },
    labels={
        "update": LABELS["update"],
        "position": "Position of the target, t",
        "difference": "How do Rare disturbants change the similarity?",
        "map": "At which positions are the gradients stable, and when?",
        "accuracy": "Are trials with stable gradients the accurate ones?",
        "similarity_rare_disturbants": "Similarity among Rare disturbants",
        "token_accuracy": LABELS["token_accuracy"],
        "condition": "Target among disturbants",
        **named("core.kind", *KINDS, "encoding.kind", "none", "sinusoidal", "similarity"),
    },
)
