"""Does the position code help with longer inputs, as it does with larger vocabularies?

Source: Morita (2024), version 1, figure 3 and section 4.1.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .experiment import Claim, Differs, Experiment, FigureLayout, Grows
from .grids import CODE, DEMO_TRAINING, SMALL_TRAINING, codes, each, grid, widths

CORES = (("elman", "Elman network"), ("gru", "GRU"), ("lstm", "LSTM"))
KINDS = [kind for kind, _ in CORES]
POINT = 0.01
"""A gain below one point of accuracy counts as none."""


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: shorter inputs and fewer updates than elsewhere."""
    shorter = {"training.iterations": 600, "task.vocab_size": 2}
    # Two tokens of length 8 make 256 sequences: some must be left to train on.
    held_out = {"task.num_held_out": 64}
    return grid(
        {"task.length": 32, **widths(128), **DEMO_TRAINING, **shorter, **held_out},
        each("task.length", [8, 16, 32]),
        each("core.kind", KINDS),
        codes(),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {"task.vocab_size": 2, **widths(128), **SMALL_TRAINING},
        each("task.length", [16, 32, 64, 128]),
        each("core.kind", KINDS),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {"task.vocab_size": 2},
        each("task.length", [64, 128, 256, 512]),
        each("core.kind", KINDS),
        codes(),
    )


def _differs(core: str, margin: float) -> Differs:
    """The encoded network's accuracy at K = 2 lies below the vanilla one's plus `−margin`."""
    where = {"core.kind": core, "task.vocab_size": 2}
    return Differs("token_accuracy", where, CODE, "task.length", sign=-1, margin=margin)


def _no_help(core: str, title: str) -> Claim:
    return Claim(
        name=f"no_help_{core}",
        statement=f"The code gains the {title} less than a point of token accuracy at K = 2.",
        source="001 Fig. 3",
        predicate=_differs(core, -POINT),
    )


def _below(core: str, title: str) -> Claim:
    return Claim(
        name=f"below_{core}",
        statement=f"The encoded {title} scores below the vanilla one at K = 2.",
        source="001 section 4.1",
        predicate=_differs(core, 0.0),
    )


def _degrades(code: str, title: str) -> Claim:
    return Claim(
        name=f"lstm_degrades_{code}",
        statement=f"The {title} LSTM's token accuracy falls with the input length.",
        source="001 section 4.1",
        predicate=Grows(
            "token_accuracy",
            {"core.kind": "lstm", "encoding.kind": code, "task.vocab_size": 2},
            None,
            along="task.length",
            sign=-1,
        ),
    )


EXPERIMENT = Experiment(
    name="input_length",
    question=CATALOGUE["input_length"].question,
    source=CATALOGUE["input_length"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(_no_help(*core) for core in CORES),
        *(_below(*core) for core in CORES[:2]),
        _degrades("none", "vanilla"),
        _degrades("sinusoidal", "encoded"),
    ),
    figure=FigureLayout(
        x="task.length",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("token_accuracy",),
        contrast=CODE,
        x_base=2,
    ),
    labels={
        "task.length": "Input length L",
        "core.kind": "Core",
        "encoding.kind": "Code",
        "elman": "Elman",
        "gru": "GRU",
        "lstm": "LSTM",
        "none": "Vanilla",
        "sinusoidal": "Position-encoded",
        "token_accuracy": "Token accuracy",
    },
)
