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
    OURS,
    PAPER_SETTING,
    claims_about,
    encoding_helps,
    falls,
    lay_out,
)
from .dual_frequency import CONDITIONS, DISTURBANTS, DUAL_FREQUENCY
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODED,
    ENCODING,
    LSTM,
    MASTERY,
    RATE,
    SMALL_PACED,
    UPDATES,
    VANILLA,
    VOCABULARY,
    Settings,
    at,
    brief,
    cores,
    crossed,
    grids,
    kept,
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


SIMILARITY = "similarity"
of_both = partial(claims_about, conditions=kinds("gru", "lstm"), source=SOURCE, table=TABLE)
of_s4d = partial(claims_about, conditions=kinds("s4d"), source=V5, table=TABLE)
of_paper_s4d = partial(of_s4d, conditions=crossed([PAPER_SETTING], kinds("s4d")))
AFTER = {"percent": 100}
FREQUENT = {**VANILLA, "target": "Frequent"}
AMONG_RARE = {"condition": "Frequent among Rare"}


def _falls(core: str, how: str) -> list[Claim]:
    return of_both(
        "falls_{core}",
        "The vanilla {core}'s similarity among Rare disturbants falls during training (the text: "
        "{how}), for Frequent targets",
        falls({**VANILLA, **AMONG_RARE, "percent": TRAINED}, SIMILARITY, "update"),
        conditions=kinds(core),
        how=how,
    )


def _stable(target: str) -> list[Claim]:
    among_rare = {**VANILLA, "condition": f"{target} among Rare"}
    return of_paper_s4d(
        f"vanilla_stable_{{core}}_{target.lower()}",
        "Throughout the training the vanilla {core} is highly stable among Rare disturbants, for "
        "{target} targets",
        AtLeast(SIMILARITY, among_rare, "update", (*FIRST, *LATER), HIGH, OURS),
        target=target,
    )


STEADIED = (
    *of_both(
        "rare_disturbants_destabilise_{core}",
        "After training, Rare disturbants lower the vanilla {core}'s similarity",
        Differs(SIMILARITY, {**VANILLA, **AFTER}, DISTURBANTS, "target", sign=-1),
    ),
    *of_both(
        "encoding_stabilises_{core}",
        "After training, the encoding raises the {core}'s similarity among Rare disturbants",
        Differs(SIMILARITY, {"disturbants": "Rare", **AFTER}, ENCODING, "target"),
    ),
)
CLAIMS = (
    *STEADIED[:2],
    *_falls("gru", "gradually"),
    *_falls("lstm", "rapidly"),
    *of_both(
        "rapidly_{core}",
        "In the first fifth of the training, Rare disturbants already lower the vanilla {core}'s "
        "similarity for Frequent targets (our reading of a rapid fall)",
        Differs(SIMILARITY, {**FREQUENT, "percent": EARLY}, DISTURBANTS, "update", sign=-1),
        conditions=kinds("lstm"),
    ),
    *STEADIED[2:],
    *of_both(
        "encoded_stays_high_{core}",
        "After training, the encoded {core}'s similarity is high in all four conditions",
        AtLeast(SIMILARITY, {**ENCODED, **AFTER}, "condition", CONDITIONS, HIGH, OURS),
        conditions=crossed([PAPER_SETTING], kinds("gru", "lstm")),
    ),
    *_stable("Frequent"),
    *_stable("Rare"),
    *of_s4d(
        "encoding_marginal_{core}",
        "After training, the encoding changes the {core}'s similarity marginally in every "
        "condition",
        Equivalent(SIMILARITY, AFTER, ENCODING, "condition", CONDITIONS, MARGINAL, OURS),
    ),
    *of_paper_s4d(
        "early_{core}",
        "Up to update 10,000, Rare disturbants lower the vanilla {core}'s similarity for Frequent "
        "targets",
        Differs(SIMILARITY, {**FREQUENT, "update": FIRST}, DISTURBANTS, "update", FIRST, sign=-1),
    ),
    *of_paper_s4d(
        "encoding_helps_early_{core}",
        "Up to update 10,000, the encoding raises the {core}'s similarity among Rare disturbants, "
        "for Frequent targets",
        Differs(SIMILARITY, {**AMONG_RARE, "update": FIRST}, ENCODING, "update", FIRST),
    ),
    *of_paper_s4d(
        "difference_gone_{core}",
        "After update 10,000, Rare and Frequent disturbants differ marginally in the vanilla "
        "{core}'s similarity, for Frequent targets",
        Equivalent(
            SIMILARITY, {**FREQUENT, "update": LATER}, DISTURBANTS, "update", LATER, MARGINAL, OURS
        ),
    ),
)

over_updates = partial(lay_out, "update", SIMILARITY, table=TABLE)
GRADIENT_STABILITY = Experiment(
    name="gradient_stability",
    scales={
        # Minutes, and an hour or two, on two CPU cores; every 5,000 updates, for GPUs.
        "demo": lambda: _analysed("demo", num_per_condition=16, map_per_condition=2),
        "small": lambda: _analysed("small", 3, num_per_condition=128, map_per_condition=16),
        "paper": lambda: _analysed("paper", 23, num_per_condition=256),
    },
    claims=with_primary(CLAIMS, "rare_disturbants_destabilise_*", "encoding_stabilises_*"),
    figure=over_updates(
        panels="encoding.kind", rows="core.kind", lines="condition", contrast=None, form="bands"
    ),
    more_figures={
        "difference": over_updates(
            rows=("target",),
            lines=("disturbants", "encoding.kind"),
            contrast=DISTURBANTS,
            form="difference",
        ),
        "map": over_updates(
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
        "position": "Position of the target, t",
        "difference": "How do Rare disturbants change the similarity?",
        "map": "At which positions are the gradients stable, and when?",
        "accuracy": "Are trials with stable gradients the accurate ones?",
        "similarity_rare_disturbants": "Similarity among Rare disturbants",
    },
)

MENDED = of_both(
    "mends_more_{core}",
    "After training, the encoding raises the {core}'s similarity more among Rare disturbants than "
    "among Frequent ones",
    DiffersMore(SIMILARITY, AFTER, ENCODING, DISTURBANTS, "target"),
    ours=True,
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
                **MASTERY,
                "task.length": 32,
                "task.num_per_cell": 64,
                UPDATES: 40_000,
                "training.keep_interval": 5_000,
                "analysis": {"num_per_condition": 128},
            },
            cores(gru=4, lstm=4),
        ),
    ),
    claims=with_primary(
        (*MENDED, *STEADIED, *(encoding_helps(core, SOURCE) for core in ("gru", "lstm"))),
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
        {**at(ENDS[cell]), UPDATES: updates, **kept(interval)}
        for cell, (updates, interval) in cells.items()
    ]


def _leads(name: str, here: Settings, cell: str) -> list[Claim]:
    return claims_about(
        f"lead_{name}_when_{cell}",
        f"At the {cell} cell the {{encoding}} {{core}}'s similarity precedes the next fall of its "
        "loss, beyond the loss",
        AtLeast("lead", {}, VOCABULARY, PLANNED, 0.0, "ours: no partial correlation"),
        [here],
        SOURCE[0],
        ours=True,
    )


def _claims(cell: str) -> list[Claim]:
    here: Settings = {**LSTM, **either(ENDS[cell][0])}
    at_equal = partial(
        claims_about, conditions=[here], source=SOURCE[0], table=AT_LEVELS, ours=True, cell=cell
    )
    among_rare = {"disturbants": "Rare"}
    return [
        *at_equal(
            "similarity_when_{cell}",
            "At the {cell} cell at equal accuracy the encoding raises the {core}'s similarity "
            "among Rare disturbants",
            Differs(SIMILARITY, among_rare, ENCODING, "level"),
        ),
        *at_equal(
            "noise_when_{cell}",
            "At the {cell} cell at equal accuracy the encoded {core}'s gradients are less noisy "
            "than the vanilla one's",
            Differs("noise_scale", among_rare, ENCODING, "level", sign=-1),
        ),
        *at_equal(
            "rare_when_{cell}",
            "At the {cell} cell at equal accuracy Rare disturbants lower the vanilla {core}'s "
            "similarity",
            Differs(SIMILARITY, VANILLA, DISTURBANTS, "level", sign=-1),
        ),
        *_leads("vanilla", {**here, **VANILLA}, cell),
        *_leads("encoded", {**here, **ENCODED}, cell),
    ]


DESCENT = Experiment(
    name="descent",
    scales=grids(
        {"task.kind": "dual_frequency", **LSTM},
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
        SIMILARITY,
        "noise_scale",
        "loss",
        panels=(RATE, "disturbants"),
        contrast=None,
        table=AT_LEVELS,
    ),
    labels={
        "level": "Training accuracy",
        "loss": "Loss of fresh sequences",
        "noise_scale": "log2 of the noise scale, sequences",
        "lead": "Partial correlation with the next fall of the loss",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
