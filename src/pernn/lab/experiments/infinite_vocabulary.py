"""Does the encoding help with vectors, of which there are infinitely many?

Source: Morita (2024), version 1, appendix B.3 and figure 9.
"""

from pernn.lab.runs import RunSpec

from .comparisons import OURS, falls, named
from .experiment import Experiment, FigureLayout
from .grids import DEMO_TRAINING, ENCODING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import PLANNED, Claim, Differs, Equivalent, Place, with_primary

CORES = {"elman": "Elman network", "gru": "GRU", "lstm": "LSTM"}
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
HIGH = tuple(size for size in DIMENSIONS if size >= 64)
MARGIN = 0.01
"""A difference of cosines below this counts as no discernible effect."""
V1 = Place("v1", "appendix B.3 and Fig. 9")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: an eighth of the length."""
    return grid(
        {
            "task.kind": "infinite_vocabulary",
            "task.length": 8,
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 750,
        },
        each("task.dimension", [8, 64]),
        each("core.kind", list(CORES)),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores."""
    return grid(
        {"task.kind": "infinite_vocabulary", **SMALL},
        each("task.dimension", [8, 32, 64]),
        each("core.kind", list(CORES)),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {"task.kind": "infinite_vocabulary", "task.length": 64},
        each("task.dimension", DIMENSIONS),
        each("core.kind", list(CORES)),
        encodings(),
    )


def _no_effect(core: str) -> Claim:
    return Claim(
        name=f"no_effect_{core}",
        statement=f"The encoding has no discernible effect on the {CORES[core]}'s cosine "
        "similarity, in any dimension.",
        source=V1,
        predicate=Equivalent(
            "cosine_similarity",
            {"core.kind": core},
            ENCODING,
            cells="task.dimension",
            required=PLANNED,
            margin=MARGIN,
            margin_origin=OURS,
        ),
    )


def _falls(core: str, encoding: str) -> Claim:
    title = "vanilla" if encoding == ENCODING.baseline else "encoded"
    return Claim(
        name=f"falls_{core}_{encoding}",
        statement=f"The {title} {CORES[core]}'s cosine similarity falls with the dimension.",
        source=V1,
        predicate=falls(
            {"core.kind": core, "encoding.kind": encoding}, "cosine_similarity", "task.dimension"
        ),
    )


HARM = Claim(
    name="harm_elman",
    statement="From 64 dimensions on, the encoding lowers the Elman network's cosine similarity.",
    source=V1,
    predicate=Differs(
        "cosine_similarity",
        {"core.kind": "elman", "task.dimension": HIGH},
        ENCODING,
        cells="task.dimension",
        sign=-1,
    ),
)

EXPERIMENT = Experiment(
    name="infinite_vocabulary",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *map(_no_effect, ("gru", "lstm")),
            HARM,
            *(
                _falls(core, encoding)
                for core in ("gru", "lstm")
                for encoding in ("none", "sinusoidal")
            ),
        ),
        "no_effect_gru",
        "no_effect_lstm",
        "harm_elman",
    ),
    figure=FigureLayout(
        x="task.dimension",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("cosine_similarity",),
        contrast=ENCODING,
        x_base=2,
        table="cosine",
    ),
    labels={
        "task.dimension": "Dimension d",
        **named("core.kind", *CORES, "encoding.kind", "none", "sinusoidal"),
        "cosine_similarity": "Cosine similarity",
    },
)
