"""Does feedback of a network's own outputs replace the encoding?

Source: Morita (2024), version 1, appendix B.2 and figures 7 and 8; appendix C.2 and figure 13.
"""

from .comparisons import OURS, PAPER_SETTING, claims_about, falls, lay_out, named
from .experiment import Experiment
from .grids import POWERS, SMALL, Settings, brief, each, encodings, grids
from .predicates import AtMost, Claim, Contrast, Differs, Place, with_primary

FEEDBACK = Contrast("feedback", treated="truth", baseline="own output")
"""Two rows of each trial's table: one network, measured twice."""
TABLE = "by_feedback"
SOURCES = {
    "reverse": Place("v1", "appendix B.2 and Fig. 8"),
    "sort": Place("v1", "appendix C.2 and Fig. 13"),
}
PLAIN = {"reverse": "reverse_ordering", "sort": "sorting"}
"""Rule → the task without feedback."""
LSTM: Settings = {"core.kind": "lstm"}
TASK: Settings = {"task.kind": "autoregressive", **LSTM}
OWN_OUTPUT: Settings = {"task.rule": "reverse", "feedback": FEEDBACK.baseline}
HALF = 0.5
"""The text calls the own output's accuracy low at a large K and gives no number: our reading."""


def _against_vanilla(**where: str) -> Contrast:
    fed = {"task.rule": "reverse", **where}
    return Contrast("task.kind", "autoregressive", "reverse_ordering", treated_where=fed)


BOTH = each("task.rule", [*PLAIN])
CLAIMS = (
    *claims_about(
        "truth_helps_{task}",
        "In {task}, feeding back the truth beats the network's own output",
        lambda here: Differs("token_accuracy", here, FEEDBACK, "task.vocab_size"),
        BOTH,
        SOURCES,
        table=TABLE,
    ),
    Claim(
        name="truth_above_vanilla_reverse",
        statement="In reversing, the LSTM that is fed the truth is above the vanilla one without "
        "feedback.",
        source=SOURCES["reverse"],
        predicate=Differs(
            "token_accuracy",
            {**LSTM, "encoding.kind": "none"},
            _against_vanilla(feedback="truth"),
            cells="task.vocab_size",
        ),
        table=TABLE,
    ),
    Claim(
        name="truth_lowers_training_loss_reverse",
        statement="In reversing, being fed the truth lowers the training loss below that of the "
        "vanilla LSTM without feedback.",
        source=SOURCES["reverse"],
        predicate=Differs(
            "train_loss",
            {**LSTM, "encoding.kind": "none", "percent": 100},
            _against_vanilla(),
            cells="task.vocab_size",
            sign=-1,
        ),
        table="by_update",
    ),
    Claim(
        name="own_output_falls_reverse",
        statement="In reversing, token accuracy with the network's own output fed back falls with "
        "K (our reading, at any scale, of: low where the vocabulary is large).",
        source=SOURCES["reverse"],
        predicate=falls(OWN_OUTPUT),
        table=TABLE,
    ),
    Claim(
        name="own_output_poor_reverse",
        statement="In reversing, token accuracy with the network's own output fed back is low at "
        "every K from 1,024 on.",
        source=SOURCES["reverse"],
        predicate=AtMost(
            "token_accuracy",
            {**PAPER_SETTING, **OWN_OUTPUT},
            cells="task.vocab_size",
            required=tuple(size for size in POWERS if size >= 1024),
            threshold=HALF,
            threshold_origin=OURS,
        ),
        table=TABLE,
    ),
    *claims_about(
        "encoding_steadier_{task}",
        "In {task}, the encoding is the steadier remedy: the encoded LSTM without feedback is "
        "above the one that is fed its own output",
        lambda here: Differs(
            "token_accuracy",
            LSTM,
            Contrast(
                "encoding.kind",
                treated="sinusoidal",
                baseline="none",
                treated_where={"task.kind": PLAIN[here["task.rule"]]},
                baseline_where={**TASK, **here, "feedback": FEEDBACK.baseline},
            ),
            cells="task.vocab_size",
        ),
        BOTH,
        SOURCES,
        table=TABLE,
    ),
)
NETWORKS = [
    *({**TASK, "task.rule": rule, "encoding.kind": "none"} for rule in PLAIN),
    *({**LSTM, "task.kind": kind, **one} for kind in PLAIN.values() for one in encodings()),
]
"""The autoregressive LSTM, then those without feedback, vanilla and encoded."""

AUTOREGRESSIVE = Experiment(
    name="autoregressive",
    scales=grids(
        {},
        (),
        # Minutes, and an hour, on two CPU cores.
        demo=(
            brief(length=16, size=128, updates=800),
            NETWORKS,
            each("task.vocab_size", [4, 16, 64]),
        ),
        # The networks without feedback are those of `sorting`.
        small=(SMALL, NETWORKS, each("task.vocab_size", [64, 192])),
        paper=({"task.length": 64}, NETWORKS, each("task.vocab_size", POWERS)),
    ),
    claims=with_primary(CLAIMS, "truth_helps_reverse", "encoding_steadier_reverse"),
    figure=lay_out(
        "task.vocab_size",
        "token_accuracy",
        panels="task.rule",
        lines="feedback",
        contrast=FEEDBACK,
        x_base=2,
        table=TABLE,
    ),
    more_figures={
        "encodings": lay_out(
            "task.vocab_size",
            "token_accuracy",
            panels=("task.kind", "task.rule"),
            contrast=None,
            x_base=2,
        )
    },
    labels={
        "encodings": "Networks fed their own output, and networks without feedback",
        "task.vocab_size": "Vocabulary size K",
        "task.rule": "Rule",
        "feedback": "Fed back",
        "reverse": "Reverse ordering",
        "sort": "Sorting",
        "autoregressive": "Autoregressive",
        **named("task.kind", *PLAIN.values(), "encoding.kind", "none", "sinusoidal"),
        "own output": "Own output",
        "truth": "Truth",
        "token_accuracy": "Token accuracy",
    },
)
