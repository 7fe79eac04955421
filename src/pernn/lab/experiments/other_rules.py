"""Does the encoding help to add, look up or wait?

`predecessor_query`: the text gives no vocabulary sizes; K = 512 … 1024 is kept, and the step of 128
is ours.

Source: Morita (2024), versions 2 and 3, appendix A.1 and figure 7; version 5, appendix A.3;
version 1, appendix C.1 and figure 11.
"""

from .comparisons import claims_about, encoding_helps, gain_grows, labels, lay_out, no_gain
from .experiment import Experiment
from .grids import ENCODING, SMALL, brief, each, encodings, grids
from .predicates import Claim, EveryTrial, Place, with_primary

ADDING = (Place("v3", "appendix A.1 and Fig. 7"), Place("v5", "appendix A.1"))
FIGURE = lay_out("task.vocab_size", "token_accuracy")

DELAYED_ADDITION = Experiment(
    name="delayed_addition",
    scales=grids(
        {"task.kind": "delayed_addition", "core.kind": "lstm"},
        # Minutes, and half an hour, on two CPU cores.
        demo=(brief(length=8, size=128, updates=1_200), each("task.vocab_size", [8, 16, 24])),
        small=(SMALL, each("task.vocab_size", [8, 16, 32])),
        # Twice the usual updates.
        paper=(
            {"task.length": 16, "training.iterations": 600_000},
            each("task.vocab_size", [896, 960, 1024, 1088]),
        ),
    ),
    claims=with_primary(
        [encoding_helps("lstm", ADDING), gain_grows("lstm", ADDING)], "encoding_helps_lstm"
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "lstm"),
)

PREDECESSOR_QUERY = Experiment(
    name="predecessor_query",
    scales=grids(
        {"task.kind": "predecessor_query", "core.kind": "lstm"},
        # Minutes, and an hour, on two CPU cores.
        demo=(brief(length=8, size=128, updates=1_700), each("task.vocab_size", [16, 32, 48])),
        small=(
            {**SMALL, "training.iterations": 16_000},
            each("task.vocab_size", [8, 12, 16]),
        ),
        paper=({"task.length": 16}, each("task.vocab_size", [512, 640, 768, 896, 1024])),
    ),
    claims=with_primary(
        [encoding_helps("lstm", Place("v5", "appendix A.3"))], "encoding_helps_lstm"
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "lstm"),
)

WAITING = Place("v1", "appendix C.1 and Fig. 11")
HOLD_TIMES = (60, 70, 80, 90, 100)
WAITS = lay_out("task.hold_time", "token_accuracy", "solved", "stuck")

COPYING_MEMORY = Experiment(
    name="copying_memory",
    scales=grids(
        {"task.kind": "copying_memory", "task.vocab_size": 8, "core.kind": "lstm"},
        # Minutes, and an hour or two, on two CPU cores: fewer tokens, held for less time.
        demo=(brief(length=4, size=128, updates=1_000), each("task.hold_time", [5, 10, 20])),
        small=({**SMALL, "task.length": 5}, each("task.hold_time", [20, 30, 40])),
        paper=({"task.length": 10}, each("task.hold_time", HOLD_TIMES)),
    ),
    claims=with_primary(
        (
            Claim(
                name="no_help_lstm",
                statement="The encoding does not improve the LSTM's token accuracy.",
                source=WAITING,
                predicate=no_gain({"core.kind": "lstm"}, ENCODING, "task.hold_time"),
            ),
            *claims_about(
                "all_or_nothing_{encoding}",
                "Every {encoding} LSTM ends perfect or at chance, 0.125",
                lambda here: EveryTrial(
                    "token_accuracy",
                    {**here, "task.length": 10},
                    cells="task.hold_time",
                    required=HOLD_TIMES,
                    values=(1.0, 1 / 8),
                    tolerance=0.01,
                    tolerance_origin="ours: above the error of measuring a share in 10,240 tokens",
                ),
                encodings(),
                WAITING,
            ),
        ),
        "no_help_lstm",
    ),
    figure=WAITS,
    labels=labels(WAITS, "lstm"),
)
