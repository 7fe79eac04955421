"""Does the code help with vectors, of which there are infinitely many?

Source: Morita (2024), version 1, appendix B.3 and figure 9.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import OURS
from .experiment import Experiment, FigureLayout
from .grids import CODE, DEMO_TRAINING, SMALL_TRAINING, codes, each, grid, widths
from .predicates import Claim, Differs, Grows, Place

CORES = {"elman": "Elman network", "gru": "GRU", "lstm": "LSTM"}
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
HIGH = tuple(size for size in DIMENSIONS if size >= 64)
MARGIN = 0.01
"""The text sees no discernible effect and gives no number; less than 0.01 is our reading."""


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
        codes(),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {"task.kind": "infinite_vocabulary", "task.length": 32, **widths(128), **SMALL_TRAINING},
        each("task.dimension", [8, 16, 32, 64, 128]),
        each("core.kind", list(CORES)),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {"task.kind": "infinite_vocabulary", "task.length": 64},
        each("task.dimension", DIMENSIONS),
        each("core.kind", list(CORES)),
        codes(),
    )


def _no_gain(core: str) -> Claim:
    return Claim(
        name=f"no_gain_{core}",
        statement=f"The code gains the {CORES[core]} less than 0.01 of cosine similarity.",
        source=Place("v1", "appendix B.3, Fig. 9"),
        predicate=Differs(
            "cosine_similarity",
            {"core.kind": core},
            CODE,
            cells="task.dimension",
            sign=-1,
            margin=-MARGIN,
            margin_origin=OURS,
        ),
    )


def _no_loss(core: str) -> Claim:
    return Claim(
        name=f"no_loss_{core}",
        statement=f"The code costs the {CORES[core]} less than 0.01 of cosine similarity.",
        source=Place("v1", "appendix B.3, Fig. 9"),
        predicate=Differs(
            "cosine_similarity",
            {"core.kind": core},
            CODE,
            cells="task.dimension",
            sign=1,
            margin=-MARGIN,
            margin_origin=OURS,
        ),
    )


def _falls(core: str, code: str) -> Claim:
    title = "vanilla" if code == CODE.baseline else "encoded"
    return Claim(
        name=f"falls_{core}_{code}",
        statement=f"The {title} {CORES[core]}'s cosine similarity falls with the dimension.",
        source=Place("v1", "appendix B.3"),
        predicate=Grows(
            "cosine_similarity",
            {"core.kind": core, "encoding.kind": code},
            None,
            along="task.dimension",
            sign=-1,
        ),
    )


HARM = Claim(
    name="harm_elman",
    statement="From 64 dimensions on, the code lowers the Elman network's cosine similarity.",
    source=Place("v1", "appendix B.3, Fig. 9"),
    predicate=Differs(
        "cosine_similarity",
        {"core.kind": "elman", "task.dimension": HIGH},
        CODE,
        cells="task.dimension",
        sign=-1,
    ),
)

EXPERIMENT = Experiment(
    name="infinite_vocabulary",
    question=CATALOGUE["infinite_vocabulary"].question,
    source=CATALOGUE["infinite_vocabulary"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(claim(core) for core in ("gru", "lstm") for claim in (_no_gain, _no_loss)),
        HARM,
        *(_falls(core, code) for core in ("gru", "lstm") for code in ("none", "sinusoidal")),
    ),
    figure=FigureLayout(
        x="task.dimension",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("cosine_similarity",),
        contrast=CODE,
        x_base=2,
        table="cosine",
        form="violins",
    ),
    labels={
        "task.dimension": "Dimension d",
        "core.kind": "Core",
        "encoding.kind": "Code",
        "elman": "Elman",
        "gru": "GRU",
        "lstm": "LSTM",
        "none": "Vanilla",
        "sinusoidal": "Position-encoded",
        "cosine_similarity": "Cosine similarity",
    },
)
