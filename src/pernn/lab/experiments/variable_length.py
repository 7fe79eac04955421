"""Does the encoding help where an answer's time is unknown?

Source: Morita (2024), versions 2 and 3, appendix B and figure 9.
"""

from pernn.lab.runs import RunSpec

from .comparisons import named
from .experiment import Experiment, FigureLayout
from .grids import DEMO_TRAINING, ENCODING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Claim, Differs, Place, with_primary

SOURCE = (Place("v3", "appendix B and Fig. 9"), Place("v1", "appendix B.1 and Fig. 6"))
KINDS = ("gru", "lstm")
"""The text shows the LSTM alone; the GRU is ours, and nothing is claimed of it."""


def demo() -> tuple[RunSpec, ...]:
    """Return trials for minutes on two CPU cores.

    Lengths are a quarter, the vocabulary is small.
    """
    return grid(
        {
            "task.kind": "variable_length",
            "task.vocab_size": 16,
            "task.min_length": 8,
            "task.length": 16,
            "task.num_held_out": 64,
            **widths(128),
            **DEMO_TRAINING,
        },
        each("core.kind", KINDS),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for half an hour on two CPU cores.

    The LSTM's trials are those of `alternative_encodings`.
    """
    several = {"task.kind": "variable_length", "task.min_length": 4, "task.num_held_out": 256}
    vocabularies = {"gru": 64, "lstm": 192}
    return grid(
        {**several, **SMALL},
        [{"core.kind": core, "task.vocab_size": vocabularies[core]} for core in KINDS],
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {"task.kind": "variable_length", "task.vocab_size": 16_384},
        each("core.kind", ["lstm"]),
        encodings(),
    )


ENCODING_HELPS = Claim(
    name="encoding_helps_lstm",
    statement="The encoding raises the LSTM's token accuracy where the input length varies.",
    source=SOURCE,
    predicate=Differs("token_accuracy", {"core.kind": "lstm"}, ENCODING, cells="length"),
    table="by_length",
)

EXPERIMENT = Experiment(
    name="variable_length",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary((ENCODING_HELPS,), "encoding_helps_lstm"),
    figure=FigureLayout(
        x="length",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("token_accuracy",),
        contrast=ENCODING,
        table="by_length",
        form="bands",
    ),
    labels={
        "length": "Input length",
        **named("core.kind", *KINDS, "encoding.kind", "none", "sinusoidal", "token_accuracy"),
    },
)
