"""Does feedback of a network's own outputs replace the encoding?

Source: Morita (2024), version 1, appendix B.2 and figures 7 and 8; appendix C.2 and figure 13.
"""

from dataclasses import replace
from functools import partial

from .comparisons import ACCURACY, OURS, PAPER_SETTING, WORDS, claims_about, falls, lay_out
from .experiment import Experiment
from .grids import (
    ENCODING,
    LSTM,
    POWERS,
    SMALL,
    VANILLA,
    VOCABULARY,
    Settings,
    brief,
    each,
    encodings,
    grids,
    vocabularies,
)
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
TASK: Settings = {"task.kind": "autoregressive", **LSTM}
TRAINED: Settings = {**LSTM, **VANILLA, "percent": 100}
OWN_OUTPUT: Settings = {"task.rule": "reverse", "feedback": FEEDBACK.baseline}
LARGE = tuple(size for size in POWERS if size >= 1024)
HALF = 0.5
"""The text calls the own output's accuracy low at a large K and gives no number: our reading."""


def _against_vanilla(**where: str) -> Contrast:
    fed = {"task.rule": "reverse", **where}
    return Contrast("task.kind", "autoregressive", "reverse_ordering", treated_where=fed)


def _steadier(rule: str) -> Claim:
    fed = {**TASK, "task.rule": rule, "feedback": FEEDBACK.baseline}
    contrast = replace(ENCODING, treated_where={"task.kind": PLAIN[rule]}, baseline_where=fed)
    return Claim(
        f"encoding_steadier_{rule}",
        f"In {WORDS[rule]}, the encoding is the steadier remedy: the encoded LSTM without feedback "
        "is above the one that is fed its own output.",
        SOURCES[rule],
        Differs(ACCURACY, LSTM, contrast, VOCABULARY),
        TABLE,
    )


CLAIMS = (
    *claims_about(
        "truth_helps_{task}",
        "In {task}, feeding back the truth beats the network's own output",
        Differs(ACCURACY, {}, FEEDBACK, VOCABULARY),
        each("task.rule", [*PLAIN]),
        SOURCES,
        table=TABLE,
    ),
    Claim(
        "truth_above_vanilla_reverse",
        "In reversing, the LSTM that is fed the truth is above the vanilla one without feedback.",
        SOURCES["reverse"],
        Differs(ACCURACY, {**LSTM, **VANILLA}, _against_vanilla(feedback="truth"), VOCABULARY),
        TABLE,
    ),
    Claim(
        "truth_lowers_training_loss_reverse",
        "In reversing, being fed the truth lowers the training loss below that of the vanilla LSTM "
        "without feedback.",
        SOURCES["reverse"],
        Differs("train_loss", TRAINED, _against_vanilla(), VOCABULARY, sign=-1),
        "by_update",
    ),
    Claim(
        "own_output_falls_reverse",
        "In reversing, token accuracy with the network's own output fed back falls with K (our "
        "reading, at any scale, of: low where the vocabulary is large).",
        SOURCES["reverse"],
        falls(OWN_OUTPUT),
        TABLE,
    ),
    Claim(
        "own_output_poor_reverse",
        "In reversing, token accuracy with the network's own output fed back is low at every K "
        "from 1,024 on.",
        SOURCES["reverse"],
        AtMost(ACCURACY, {**PAPER_SETTING, **OWN_OUTPUT}, VOCABULARY, LARGE, HALF, OURS),
        TABLE,
    ),
    _steadier("reverse"),
    _steadier("sort"),
)
NETWORKS = [
    *({**TASK, "task.rule": rule, **VANILLA} for rule in PLAIN),
    *({**LSTM, "task.kind": kind, **one} for kind in PLAIN.values() for one in encodings()),
]
"""The autoregressive LSTM, then those without feedback, vanilla and encoded."""

over_sizes = partial(lay_out, VOCABULARY, ACCURACY, x_base=2)
AUTOREGRESSIVE = Experiment(
    name="autoregressive",
    scales=grids(
        {},
        (),
        # Minutes, and an hour, on two CPU cores.
        demo=(brief(length=16, size=128, updates=800), NETWORKS, vocabularies(4, 16, 64)),
        # The networks without feedback are those of `sorting`.
        small=(SMALL, NETWORKS, vocabularies(64, 192)),
        paper=({"task.length": 64}, NETWORKS, vocabularies(*POWERS)),
    ),
    claims=with_primary(CLAIMS, "truth_helps_reverse", "encoding_steadier_reverse"),
    figure=over_sizes(panels="task.rule", lines="feedback", contrast=FEEDBACK, table=TABLE),
    more_figures={"encodings": over_sizes(panels=("task.kind", "task.rule"), contrast=None)},
    labels={
        "encodings": "Networks fed their own output, and networks without feedback",
        "task.rule": "Rule",
        "feedback": "Fed back",
        "reverse": "Reverse ordering",
        "sort": "Sorting",
        "autoregressive": "Autoregressive",
        "own output": "Own output",
        "truth": "Truth",
    },
)
