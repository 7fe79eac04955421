"""Do rare tokens turn the gradients of networks without an encoding?

The trainings are those of `dual_frequency`: whoever has run it has only the analysis left to do.

Source: Morita (2024), versions 2 and 3, section 2.3 and figure 5; version 5, section 4.3,
for S4D.
"""

from pernn.lab.runs import RunSpec

from . import dual_frequency
from .comparisons import CORES, LABELS, OURS, PAPER_SETTING, falls, named
from .dual_frequency import CONDITIONS, DISTURBANTS
from .experiment import Experiment, FigureLayout
from .grids import ENCODING, Settings
from .predicates import AtLeast, Claim, Differs, Equivalent, Place, with_primary

TABLE = "gradient_stability"
RECURRENT = ("gru", "lstm")
KINDS = (*RECURRENT, "s4d")
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
SOURCE = (Place("v3", "section 2.3 and Fig. 5"), Place("v5", "section 4.3"))
S4D_SOURCE = Place("v5", "section 4.3")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    return _analysed(dual_frequency.demo(), num_per_condition=16, map_per_condition=2)


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores."""
    return _analysed(
        dual_frequency.small(), s4d_source_step=3, num_per_condition=128, map_per_condition=16
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published trainings, every 5,000 updates, for GPUs."""
    return _analysed(dual_frequency.paper(), s4d_source_step=23, num_per_condition=256)


def _analysed(
    specs: tuple[RunSpec, ...], s4d_source_step: int = 1, **config: int
) -> tuple[RunSpec, ...]:
    """Put an analysis behind every training; S4D's target stands behind a shared prefix."""
    steps = {"s4d": s4d_source_step}
    return tuple(
        spec.override({"analysis": {"source_step": steps.get(spec.core.kind, 1), **config}})
        for spec in specs
    )


def _vanilla(core: str, **more: object) -> Settings:
    return {"core.kind": core, "encoding.kind": ENCODING.baseline, **more}


def _lower(core: str) -> Claim:
    return Claim(
        name=f"rare_disturbants_destabilise_{core}",
        statement=f"After training, Rare disturbants lower the vanilla {CORES[core]}'s similarity.",
        source=SOURCE,
        predicate=Differs(
            "similarity", _vanilla(core, percent=100), DISTURBANTS, cells="target", sign=-1
        ),
        table=TABLE,
    )


def _falls(core: str, how: str) -> Claim:
    return Claim(
        name=f"falls_{core}",
        statement=f"The vanilla {CORES[core]}'s similarity among Rare disturbants falls during "
        f"training ({how}), for Frequent targets.",
        source=SOURCE,
        predicate=falls(
            _vanilla(core, condition="Frequent among Rare", percent=TRAINED), "similarity", "update"
        ),
        table=TABLE,
    )


def _stabilises(core: str) -> Claim:
    return Claim(
        name=f"encoding_stabilises_{core}",
        statement=f"After training, the encoding raises the {CORES[core]}'s similarity among Rare "
        "disturbants.",
        source=SOURCE,
        predicate=Differs(
            "similarity",
            {"core.kind": core, "disturbants": "Rare", "percent": 100},
            ENCODING,
            cells="target",
        ),
        table=TABLE,
    )


def _stays_high(core: str) -> Claim:
    return Claim(
        name=f"encoded_stays_high_{core}",
        statement=f"After training, the encoded {CORES[core]}'s similarity is high in all four "
        "conditions.",
        source=SOURCE,
        predicate=AtLeast(
            "similarity",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": ENCODING.treated, "percent": 100},
            cells="condition",
            required=CONDITIONS,
            threshold=HIGH,
            threshold_origin=OURS,
        ),
        table=TABLE,
    )


RAPIDLY = Claim(
    name="rapidly_lstm",
    statement="In the first fifth of the training, Rare disturbants already lower the vanilla "
    "LSTM's similarity for Frequent targets (our reading of a rapid fall).",
    source=SOURCE,
    predicate=Differs(
        "similarity",
        _vanilla("lstm", target="Frequent", percent=EARLY),
        DISTURBANTS,
        cells="update",
        sign=-1,
    ),
    table=TABLE,
)


def _s4d_stable(target: str) -> Claim:
    return Claim(
        name=f"vanilla_stable_s4d_{target.lower()}",
        statement="Throughout the training the vanilla S4D model is highly stable among Rare "
        f"disturbants, for {target} targets.",
        source=S4D_SOURCE,
        predicate=AtLeast(
            "similarity",
            {
                **PAPER_SETTING,
                **_vanilla("s4d", condition=f"{target} among Rare"),
            },
            cells="update",
            required=(*FIRST, *LATER),
            threshold=HIGH,
            threshold_origin=OURS,
        ),
        table=TABLE,
    )


S4D = (
    *(_s4d_stable(target) for target in ("Frequent", "Rare")),
    Claim(
        name="encoding_marginal_s4d",
        statement="After training, the encoding changes the S4D model's similarity marginally in "
        "every condition.",
        source=S4D_SOURCE,
        predicate=Equivalent(
            "similarity",
            {"core.kind": "s4d", "percent": 100},
            ENCODING,
            cells="condition",
            required=CONDITIONS,
            margin=MARGINAL,
            margin_origin=OURS,
        ),
        table=TABLE,
    ),
    Claim(
        name="early_s4d",
        statement="Up to update 10,000, Rare disturbants lower the vanilla S4D model's similarity "
        "for Frequent targets.",
        source=S4D_SOURCE,
        predicate=Differs(
            "similarity",
            {**PAPER_SETTING, **_vanilla("s4d", target="Frequent", update=FIRST)},
            DISTURBANTS,
            cells="update",
            required=FIRST,
            sign=-1,
        ),
        table=TABLE,
    ),
    Claim(
        name="encoding_helps_early_s4d",
        statement="Up to update 10,000, the encoding raises the S4D model's similarity among Rare "
        "disturbants, for Frequent targets.",
        source=S4D_SOURCE,
        predicate=Differs(
            "similarity",
            {
                **PAPER_SETTING,
                "core.kind": "s4d",
                "condition": "Frequent among Rare",
                "update": FIRST,
            },
            ENCODING,
            cells="update",
            required=FIRST,
        ),
        table=TABLE,
    ),
    Claim(
        name="difference_gone_s4d",
        statement="After update 10,000, Rare and Frequent disturbants differ marginally in the "
        "vanilla S4D model's similarity, for Frequent targets.",
        source=S4D_SOURCE,
        predicate=Equivalent(
            "similarity",
            {**PAPER_SETTING, **_vanilla("s4d", target="Frequent", update=LATER)},
            DISTURBANTS,
            cells="update",
            required=LATER,
            margin=MARGINAL,
            margin_origin=OURS,
        ),
        table=TABLE,
    ),
)


EXPERIMENT = Experiment(
    name="gradient_stability",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *map(_lower, RECURRENT),
            _falls("gru", "the text: gradually"),
            _falls("lstm", "the text: rapidly"),
            RAPIDLY,
            *map(_stabilises, RECURRENT),
            *map(_stays_high, RECURRENT),
            *S4D,
        ),
        "rare_disturbants_destabilise_gru",
        "rare_disturbants_destabilise_lstm",
        "encoding_stabilises_gru",
        "encoding_stabilises_lstm",
    ),
    figure=FigureLayout(
        x="update",
        panels="encoding.kind",
        rows="core.kind",
        lines="condition",
        metrics=("similarity",),
        table=TABLE,
        form="bands",
    ),
    more_figures={
        "difference": FigureLayout(
            x="update",
            panels="core.kind",
            rows=("target",),
            lines=("disturbants", "encoding.kind"),
            metrics=("similarity",),
            contrast=DISTURBANTS,
            table=TABLE,
            form="difference",
        ),
        "map": FigureLayout(
            x="update",
            panels="condition",
            rows=("core.kind", "encoding.kind"),
            lines="position",
            metrics=("similarity",),
            table="stability_map",
            form="heat",
        ),
        "accuracy": FigureLayout(
            x="similarity_rare_disturbants",
            panels="core.kind",
            lines="encoding.kind",
            metrics=("token_accuracy",),
            form="scatter",
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
