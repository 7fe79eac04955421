"""Does the code help where the time of an answer is not known beforehand?

Source: Morita (2024), versions 2 and 3, appendix B and figure 9.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import CORES, LABELS, code_helps
from .experiment import Experiment, FigureLayout
from .grids import CODE, DEMO_TRAINING, SMALL_TRAINING, codes, each, grid, widths
from .predicates import Claim, Differs, Place

SOURCE = Place("v3", "appendix B, Fig. 9")
KINDS = ("gru", "lstm")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: a quarter of the lengths, a small vocabulary."""
    return grid(
        {
            "task.kind": "variable_length",
            "task.vocab_size": 16,
            "task.shortest": 8,
            "task.length": 16,
            "task.num_held_out": 64,
            **widths(128),
            **DEMO_TRAINING,
        },
        each("core.kind", KINDS),
        codes(),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {
            "task.kind": "variable_length",
            "task.vocab_size": 64,
            "task.shortest": 16,
            "task.length": 32,
            "task.num_held_out": 128,
            **widths(128),
            **SMALL_TRAINING,
            "training.iterations": 24_000,
        },
        each("core.kind", KINDS),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {"task.kind": "variable_length", "task.vocab_size": 16_384},
        each("core.kind", ["lstm"]),
        codes(),
    )


def _at(core: str, length: int, which: str) -> Claim:
    return Claim(
        name=f"code_helps_{which}_{core}",
        statement=f"At L = 32 … 64, the encoded {CORES[core]} is better on the {which} sequences "
        f"({length} tokens).",
        source=SOURCE,
        predicate=Differs(
            "token_accuracy",
            {"core.kind": core, "task.shortest": 32, "task.length": 64, "length": length},
            CODE,
            "length",
        ),
        table="by_length",
    )


EXPERIMENT = Experiment(
    name="variable_length",
    question=CATALOGUE["variable_length"].question,
    source=CATALOGUE["variable_length"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(code_helps(core, SOURCE) for core in KINDS),
        _at("lstm", 32, "shortest"),
        _at("lstm", 64, "longest"),
    ),
    figure=FigureLayout(
        x="length",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("token_accuracy",),
        contrast=CODE,
        table="by_length",
        form="bands",
    ),
    labels={
        "length": "Input length",
        **{name: LABELS[name] for name in ("core.kind", *KINDS)},
        **{name: LABELS[name] for name in ("encoding.kind", "none", "sinusoidal")},
        "token_accuracy": LABELS["token_accuracy"],
    },
)
