"""Must it be sines and cosines, or do more parameters help?

The `learned` encoding is confounded with its norm: its rows start at a norm of about √D (22.6 at
D = 512), while the rows of the others have norm 1. It is kept as published;
`--set encoding.normalize=true` scales its rows to norm 1.

Source: Morita (2024), versions 2 and 3, appendix C and figures 10 and 11; version 5, appendix C for
the parameters.
"""

from .comparisons import ACCURACY, claims_about, labels, lay_out, no_gain
from .experiment import Experiment
from .grids import LSTM, POWERS, SMALL, VOCABULARY, Settings, brief, each, encodings, grids
from .predicates import Claim, Contrast, Differs, DiffersMore, Place, with_primary

TASKS = {
    "reverse_ordering": ("inputs of one length", Place("v3", "appendix C and Fig. 10")),
    "variable_length": ("inputs of several lengths", Place("v3", "appendix C and Fig. 11")),
}
V5 = Place("v5", "appendix D")
KINDS = ("sinusoidal", "learned", "random")


def _lengths(min_length: int, num_held_out: int = 1024) -> list[Settings]:
    """Return the two tasks: inputs of one length, and of any from `min_length` up to it.

    Args:
        min_length: Length of the shortest inputs.
        num_held_out: Test sequences of each length where there are several.
    """
    fixed, variable = TASKS
    several = {"task.min_length": min_length, "task.num_held_out": num_held_out}
    return [{"task.kind": fixed}, {"task.kind": variable, **several}]


def _above(name: str, statement: str, task: str, better: str, worse: str) -> Claim:
    inputs, source = TASKS[task]
    contrast = Contrast("encoding.kind", treated=better, baseline=worse)
    return Claim(
        f"{name}_{task}",
        f"With {inputs}, the {better} encoding {statement}.",
        (source, V5),
        Differs(ACCURACY, {"task.kind": task}, contrast, VOCABULARY),
    )


def _helps(task: str, kind: str) -> Claim:
    return _above(f"{kind}_helps", "raises the LSTM's token accuracy", task, kind, "none")


def _larger_with_variable_length(other: str) -> Claim:
    contrast = Contrast("encoding.kind", treated="sinusoidal", baseline=other)
    tasks = Contrast("task.kind", treated="variable_length", baseline="reverse_ordering")
    return Claim(
        f"advantage_over_{other}_larger_with_variable_length",
        f"The sinusoidal encoding's advantage over the {other} one is larger where the input "
        "length varies.",
        (TASKS["variable_length"][1], V5),
        DiffersMore(ACCURACY, {}, contrast, tasks, VOCABULARY),
    )


CLAIMS = (
    *(_helps("reverse_ordering", kind) for kind in KINDS),
    _helps("variable_length", "sinusoidal"),
    *(
        _above(f"sinusoidal_above_{other}", f"is above the {other} one", task, "sinusoidal", other)
        for task in TASKS
        for other in KINDS[1:]
    ),
    *(_larger_with_variable_length(other) for other in KINDS[1:]),
)
FIGURE = lay_out("encoding.kind", ACCURACY, panels="task.kind", contrast=None)

ALTERNATIVE_ENCODINGS = Experiment(
    name="alternative_encodings",
    scales=grids(
        LSTM,
        encodings("none", *KINDS),
        # Minutes, and an hour, on two CPU cores.
        demo=(
            {**brief(length=24, size=128, updates=450), VOCABULARY: 16},
            _lengths(12, num_held_out=128),
        ),
        small=({**SMALL, VOCABULARY: 192}, _lengths(4, num_held_out=256)),
        paper=({VOCABULARY: 16_384}, _lengths(32)),
    ),
    claims=with_primary(CLAIMS, "*_helps_reverse_ordering", "sinusoidal_helps_variable_length"),
    figure=FIGURE,
    labels={
        **labels(FIGURE, *TASKS, "none", *KINDS),
        "reverse_ordering": "Fixed length",
        "sinusoidal": "Sinusoidal",
    },
)

DOUBLED = Contrast("encoding.kind", treated="repeated_embedding", baseline="none")
ENCODED = Contrast("encoding.kind", treated="sinusoidal", baseline="repeated_embedding")
RULES = each("task.kind", ["reverse_ordering", "sorting"])
WIDER = lay_out(VOCABULARY, ACCURACY, panels="task.kind", contrast=DOUBLED, x_base=2)
DOUBLE_CLAIMS = (
    *claims_about(
        "double_no_gain_{task}",
        "In {task}, the double vanilla LSTM does not improve on the vanilla one",
        no_gain({}, DOUBLED, VOCABULARY),
        RULES,
        Place("v5", "appendix C"),
    ),
    *claims_about(
        "encoding_beats_double_{task}",
        "In {task}, the encoded LSTM is above the double vanilla one: its gain is not due to the "
        "parameters",
        Differs(ACCURACY, {}, ENCODED, VOCABULARY),
        RULES,
        Place("v5", "appendix C"),
    ),
)

DOUBLE_VANILLA = Experiment(
    name="double_vanilla",
    scales=grids(
        LSTM,
        encodings("none", "repeated_embedding", "sinusoidal"),
        demo=(brief(length=24, size=128, updates=300), each(VOCABULARY, [8, 16]), RULES),
        # An hour on two CPU cores. Two thirds of the trials are those of `sorting`.
        small=(SMALL, each(VOCABULARY, [64, 192]), RULES),
        paper=({}, each(VOCABULARY, POWERS), RULES),
    ),
    claims=with_primary(
        DOUBLE_CLAIMS, "double_no_gain_reverse_ordering", "encoding_beats_double_reverse_ordering"
    ),
    figure=WIDER,
    labels=labels(WIDER, "reverse_ordering", "sorting", "none", "repeated_embedding", "sinusoidal"),
)
