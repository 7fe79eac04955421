"""Is it the encoding that helps, or its additional parameters?

Source: Morita (2024), version 5, appendix C.
"""

from pernn.lab.runs import RunSpec

from .comparisons import labels, no_gain
from .experiment import Experiment, FigureLayout
from .grids import DEMO_TRAINING, POWERS, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Claim, Contrast, Differs, Place, with_primary

TASKS = {"reverse_ordering": "reversing", "sorting": "sorting"}
DOUBLED = Contrast("encoding.kind", treated="repeated_embedding", baseline="none")
ENCODED = Contrast("encoding.kind", treated="sinusoidal", baseline="repeated_embedding")
CONDITIONS = encodings("none", "repeated_embedding", "sinusoidal")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    return grid(
        {
            "task.length": 24,
            "core.kind": "lstm",
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 300,
        },
        each("task.vocab_size", [8, 16]),
        each("task.kind", list(TASKS)),
        CONDITIONS,
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores.

    Two thirds of them are those of `sorting`.
    """
    return grid(
        {"core.kind": "lstm", **SMALL},
        each("task.vocab_size", [64, 192]),
        each("task.kind", list(TASKS)),
        CONDITIONS,
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {"core.kind": "lstm"},
        each("task.vocab_size", POWERS),
        each("task.kind", list(TASKS)),
        CONDITIONS,
    )


def _no_gain(task: str) -> Claim:
    return Claim(
        name=f"double_no_gain_{task}",
        statement=f"In {TASKS[task]}, the double vanilla LSTM does not improve on the vanilla one.",
        source=Place("v5", "appendix C"),
        predicate=no_gain({"task.kind": task}, DOUBLED, "task.vocab_size"),
    )


def _encoding_beats_double(task: str) -> Claim:
    return Claim(
        name=f"encoding_beats_double_{task}",
        statement=f"In {TASKS[task]}, the encoded LSTM is above the double vanilla one: its "
        "gain is not due to the parameters.",
        source=Place("v5", "appendix C"),
        predicate=Differs("token_accuracy", {"task.kind": task}, ENCODED, cells="task.vocab_size"),
    )


FIGURE = FigureLayout(
    x="task.vocab_size",
    panels="task.kind",
    lines="encoding.kind",
    metrics=("token_accuracy",),
    contrast=DOUBLED,
    x_base=2,
)

EXPERIMENT = Experiment(
    name="double_vanilla",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *(_no_gain(task) for task in TASKS),
            *(_encoding_beats_double(task) for task in TASKS),
        ),
        "double_no_gain_reverse_ordering",
        "encoding_beats_double_reverse_ordering",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *TASKS, "none", "repeated_embedding", "sinusoidal"),
)
