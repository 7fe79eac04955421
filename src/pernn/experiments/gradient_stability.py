"""Do rare tokens make the gradients of networks without a code point anywhere?

The trainings are those of `dual_frequency`: whoever has run it has only the analysis left to do.

Source: Morita (2024), versions 2 and 3, section 2.3 and figure 5; version 4 for S4D.
"""

from pernn.runs import RunSpec

from . import dual_frequency
from .catalogue import CATALOGUE
from .comparisons import CORES, LABELS
from .dual_frequency import DISTURBANTS
from .experiment import Experiment, FigureLayout
from .grids import CODE, Settings
from .predicates import Claim, Differs, Grows, Place

TABLE = "gradient_stability"
KINDS = ("gru", "lstm", "s4d")
EARLY = tuple(range(1, 21))
"""Percent of the training that count as its beginning."""
TRAINED = tuple(range(1, 101))
"""Percent of the training, the untrained network left out."""
SOURCE = Place("v3", "section 2.3 and Fig. 5")
S4D_SOURCE = Place("v5", "section 4.3")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    return _analysed(dual_frequency.demo(), num_per_condition=16, map_per_condition=2)


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores, most of it training."""
    return _analysed(dual_frequency.small(), s4d_source=12, num_per_condition=32)


def paper() -> tuple[RunSpec, ...]:
    """The published trainings, every 5,000 updates; meant for GPUs."""
    return _analysed(dual_frequency.paper(), s4d_source=23, num_per_condition=256)


def _analysed(
    specs: tuple[RunSpec, ...], s4d_source: int = 1, **config: int
) -> tuple[RunSpec, ...]:
    """Put an analysis behind every training; S4D's target stands behind a shared prefix."""
    sources = {"s4d": s4d_source}
    return tuple(
        spec.override({"analysis": {"source": sources.get(spec.core.kind, 1), **config}})
        for spec in specs
    )


def _vanilla(core: str, **more: object) -> Settings:
    return {"core.kind": core, "encoding.kind": CODE.baseline, **more}


def _source(core: str) -> Place:
    return S4D_SOURCE if core == "s4d" else SOURCE


def _lower(core: str) -> Claim:
    return Claim(
        name=f"rare_disturbants_destabilise_{core}",
        statement=f"After training, Rare disturbants lower the vanilla {CORES[core]}'s similarity.",
        source=_source(core),
        predicate=Differs(
            "similarity", _vanilla(core, percent=100), DISTURBANTS, cells="target", sign=-1
        ),
        table=TABLE,
    )


def _stays_high(core: str) -> Claim:
    return Claim(
        name=f"code_stabilises_{core}",
        statement=f"After training, the code raises the {CORES[core]}'s similarity among Rare "
        "disturbants.",
        source=_source(core),
        predicate=Differs(
            "similarity",
            {"core.kind": core, "disturbants": "Rare", "percent": 100},
            CODE,
            cells="target",
        ),
        table=TABLE,
    )


def _early(core: str, statement: str, **when: object) -> Claim:
    return Claim(
        name=f"early_{core}",
        statement=statement,
        source=_source(core),
        predicate=Differs(
            "similarity",
            _vanilla(core, target="Frequent", **when),
            DISTURBANTS,
            cells="update",
            sign=-1,
        ),
        table=TABLE,
    )


EXPERIMENT = Experiment(
    name="gradient_stability",
    question=CATALOGUE["gradient_stability"].question,
    source=CATALOGUE["gradient_stability"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *map(_lower, KINDS),
        *map(_stays_high, KINDS),
        Claim(
            name="gradually_gru",
            statement="The vanilla GRU's similarity among Rare disturbants falls during training.",
            source=SOURCE,
            predicate=Grows(
                "similarity",
                _vanilla("gru", condition="Frequent among Rare", percent=TRAINED),
                None,
                along="update",
                sign=-1,
            ),
            table=TABLE,
        ),
        _early(
            "lstm",
            "In the first fifth of the training, Rare disturbants already lower the vanilla "
            "LSTM's similarity for Frequent targets.",
            percent=EARLY,
        ),
        _early(
            "s4d",
            "Up to update 10,000, Rare disturbants lower the vanilla S4D model's similarity for "
            "Frequent targets.",
            update=(5_000, 10_000),
        ),
    ),
    figure=FigureLayout(
        x="update",
        panels="condition",
        rows="core.kind",
        lines="encoding.kind",
        metrics=("similarity",),
        table=TABLE,
        form="bands",
    ),
    more_figures={
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
        "map": "At which positions are the gradients stable, and when?",
        "accuracy": "Are trials with stable gradients the accurate ones?",
        "similarity_rare_disturbants": "Similarity among Rare disturbants",
        "token_accuracy": LABELS["token_accuracy"],
        "condition": "Target among disturbants",
        **{name: LABELS[name] for name in ("core.kind", *KINDS)},
        **{name: LABELS[name] for name in ("encoding.kind", "none", "sinusoidal")},
        "similarity": "Gradient similarity",
    },
)
