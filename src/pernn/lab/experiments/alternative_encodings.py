"""Does it have to be sines and cosines?

The `learned` encoding is confounded with its norm: its rows start at a norm of about √D (22.6 at
D = 512), while the rows of the others have norm 1. It is kept as published;
`--set encoding.normalize=true` scales its rows to norm 1.

Source: Morita (2024), versions 2 and 3, appendix C and figures 10 and 11.
"""

from pernn.lab.runs import RunSpec

from .comparisons import labels
from .experiment import Experiment, FigureLayout
from .grids import DEMO_TRAINING, SMALL, SMALL_SEEDS, Settings, encodings, grid, widths
from .predicates import Claim, Contrast, Differs, DiffersMore, Place, with_primary

TASKS = {
    "reverse_ordering": ("inputs of one length", Place("v3", "appendix C and Fig. 10")),
    "variable_length": ("inputs of several lengths", Place("v3", "appendix C and Fig. 11")),
}
V5 = Place("v5", "appendix D")
ENCODING_KINDS = ("sinusoidal", "learned", "random")


def _lengths(min_length: int, num_held_out: int = 1024) -> list[Settings]:
    """Return the two tasks: inputs of one length, and of any from `shortest` up to it.

    Args:
        min_length: Length of the shortest inputs.
        num_held_out: Test sequences of each length where there are several.
    """
    fixed, variable = TASKS
    several = {"task.min_length": min_length, "task.num_held_out": num_held_out}
    return [{"task.kind": fixed}, {"task.kind": variable, **several}]


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    return grid(
        {
            "task.vocab_size": 16,
            "task.length": 24,
            "core.kind": "lstm",
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 450,
        },
        _lengths(12, num_held_out=128),
        encodings("none", *ENCODING_KINDS),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    return grid(
        {"task.vocab_size": 192, "core.kind": "lstm", **SMALL},
        _lengths(4, num_held_out=256),
        encodings("none", *ENCODING_KINDS),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {"task.vocab_size": 16_384, "core.kind": "lstm"},
        _lengths(32),
        encodings("none", *ENCODING_KINDS),
    )


def _above(task: str, better: str, worse: str) -> Differs:
    contrast = Contrast("encoding.kind", treated=better, baseline=worse)
    return Differs("token_accuracy", {"task.kind": task}, contrast, cells="task.vocab_size")


def _helps(task: str, encoding: str) -> Claim:
    inputs, source = TASKS[task]
    return Claim(
        name=f"{encoding}_helps_{task}",
        statement=f"With {inputs}, the {encoding} encoding raises the LSTM's token accuracy.",
        source=(source, V5),
        predicate=_above(task, encoding, "none"),
    )


def _sinusoidal_best(task: str, other: str) -> Claim:
    inputs, source = TASKS[task]
    return Claim(
        name=f"sinusoidal_above_{other}_{task}",
        statement=f"With {inputs}, the sinusoidal encoding is above the {other} one.",
        source=(source, V5),
        predicate=_above(task, "sinusoidal", other),
    )


def _larger_with_variable_length(other: str) -> Claim:
    return Claim(
        name=f"advantage_over_{other}_larger_with_variable_length",
        statement=f"The sinusoidal encoding's advantage over the {other} one is larger where the "
        "input length varies.",
        source=(TASKS["variable_length"][1], V5),
        predicate=DiffersMore(
            "token_accuracy",
            {},
            Contrast("encoding.kind", treated="sinusoidal", baseline=other),
            Contrast("task.kind", treated="variable_length", baseline="reverse_ordering"),
            cells="task.vocab_size",
        ),
    )


FIGURE = FigureLayout(
    x="encoding.kind",
    panels="task.kind",
    lines="encoding.kind",
    metrics=("token_accuracy",),
)

EXPERIMENT = Experiment(
    name="alternative_encodings",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *(_helps("reverse_ordering", encoding) for encoding in ENCODING_KINDS),
            _helps("variable_length", "sinusoidal"),
            *(_sinusoidal_best(task, other) for task in TASKS for other in ENCODING_KINDS[1:]),
            *(_larger_with_variable_length(other) for other in ENCODING_KINDS[1:]),
        ),
        "sinusoidal_helps_reverse_ordering",
        "sinusoidal_helps_variable_length",
        "learned_helps_reverse_ordering",
        "random_helps_reverse_ordering",
    ),
    figure=FIGURE,
    labels={
        **labels(FIGURE, *TASKS, "none", *ENCODING_KINDS),
        "reverse_ordering": "Fixed length",
        "sinusoidal": "Sinusoidal",
    },
)
