"""Does feedback of a network's own outputs replace the encoding?

Source: Morita (2024), version 1, appendix B.2 and figures 7 and 8; appendix C.2 and figure 13.
"""

from collections.abc import Sequence

from pernn.lab.runs import RunSpec

from .comparisons import OURS, PAPER_SETTING, falls, named
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    POWERS,
    SEEDS,
    SMALL,
    SMALL_SEEDS,
    Settings,
    each,
    encodings,
    grid,
    widths,
)
from .predicates import AtMost, Claim, Contrast, Differs, Place, with_primary

FEEDBACK = Contrast("feedback", treated="truth", baseline="own output")
"""Two rows of each trial's table: one network, measured twice."""
TABLE = "by_feedback"
RULES = {"reverse": "reversing", "sort": "sorting"}
SOURCES = {
    "reverse": Place("v1", "appendix B.2 and Fig. 8"),
    "sort": Place("v1", "appendix C.2 and Fig. 13"),
}
PLAIN = {"reverse": "reverse_ordering", "sort": "sorting"}
TASK: Settings = {"task.kind": "autoregressive", "core.kind": "lstm"}
LARGE = tuple(size for size in POWERS if size >= 1024)
HALF = 0.5
"""The text calls the own output's accuracy low at a large K and gives no number: our reading."""


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: a quarter of the length."""
    sizes = {"task.length": 16, **widths(128), **DEMO_TRAINING, "training.iterations": 800}
    return _with_and_without_feedback(sizes, [4, 16, 64])


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores.

    The networks without feedback are those of `sorting`.
    """
    return _with_and_without_feedback(SMALL, [64, 192], SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return _with_and_without_feedback({"task.length": 64}, POWERS)


def _with_and_without_feedback(
    base: Settings, sizes: Sequence[int], seeds: Sequence[int] = SEEDS
) -> tuple[RunSpec, ...]:
    """Put the LSTMs without feedback, vanilla and encoded, beside the autoregressive one."""
    rules = [{**TASK, "task.rule": rule, "encoding.kind": "none"} for rule in RULES]
    plain = [
        {"core.kind": "lstm", "task.kind": kind, **encoding}
        for kind in PLAIN.values()
        for encoding in encodings()
    ]
    return grid(base, [*rules, *plain], each("task.vocab_size", sizes), seeds=seeds)


def _truth_helps(rule: str) -> Claim:
    return Claim(
        name=f"truth_helps_{rule}",
        statement=f"In {RULES[rule]}, feeding back the truth beats the network's own output.",
        source=SOURCES[rule],
        predicate=Differs("token_accuracy", {"task.rule": rule}, FEEDBACK, "task.vocab_size"),
        table=TABLE,
    )


TRUTH_ABOVE_VANILLA = Claim(
    name="truth_above_vanilla_reverse",
    statement="In reversing, the LSTM that is fed the truth is above the vanilla one without "
    "feedback.",
    source=SOURCES["reverse"],
    predicate=Differs(
        "token_accuracy",
        {"core.kind": "lstm", "encoding.kind": "none"},
        Contrast(
            "task.kind",
            treated="autoregressive",
            baseline="reverse_ordering",
            treated_where={"task.rule": "reverse", "feedback": FEEDBACK.treated},
        ),
        cells="task.vocab_size",
    ),
    table=TABLE,
)


LOWER_LOSS = Claim(
    name="truth_lowers_training_loss_reverse",
    statement="In reversing, being fed the truth lowers the training loss below that of the "
    "vanilla LSTM without feedback.",
    source=SOURCES["reverse"],
    predicate=Differs(
        "train_loss",
        {"core.kind": "lstm", "encoding.kind": "none", "percent": 100},
        Contrast(
            "task.kind",
            treated="autoregressive",
            baseline="reverse_ordering",
            treated_where={"task.rule": "reverse"},
        ),
        cells="task.vocab_size",
        sign=-1,
    ),
    table="by_update",
)


def _encoding_steadier(rule: str) -> Claim:
    return Claim(
        name=f"encoding_steadier_{rule}",
        statement=f"In {RULES[rule]}, the encoding is the steadier remedy: the encoded LSTM "
        "without feedback is above the one that is fed its own output.",
        source=SOURCES[rule],
        predicate=Differs(
            "token_accuracy",
            {"core.kind": "lstm"},
            Contrast(
                "encoding.kind",
                treated="sinusoidal",
                baseline="none",
                treated_where={"task.kind": PLAIN[rule]},
                baseline_where={**TASK, "task.rule": rule, "feedback": FEEDBACK.baseline},
            ),
            cells="task.vocab_size",
        ),
        table=TABLE,
    )


FALLS = Claim(
    name="own_output_falls_reverse",
    statement="In reversing, token accuracy with the network's own output fed back falls with K "
    "(our reading, at any scale, of: low where the vocabulary is large).",
    source=SOURCES["reverse"],
    predicate=falls({"task.rule": "reverse", "feedback": FEEDBACK.baseline}),
    table=TABLE,
)
POOR = Claim(
    name="own_output_poor_reverse",
    statement="In reversing, token accuracy with the network's own output fed back is low at every "
    "K from 1,024 on.",
    source=SOURCES["reverse"],
    predicate=AtMost(
        "token_accuracy",
        {**PAPER_SETTING, "task.rule": "reverse", "feedback": FEEDBACK.baseline},
        cells="task.vocab_size",
        required=LARGE,
        threshold=HALF,
        threshold_origin=OURS,
    ),
    table=TABLE,
)

EXPERIMENT = Experiment(
    name="autoregressive",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *map(_truth_helps, RULES),
            TRUTH_ABOVE_VANILLA,
            LOWER_LOSS,
            FALLS,
            POOR,
            *map(_encoding_steadier, RULES),
        ),
        "truth_helps_reverse",
        "encoding_steadier_reverse",
    ),
    figure=FigureLayout(
        x="task.vocab_size",
        panels="task.rule",
        lines="feedback",
        metrics=("token_accuracy",),
        contrast=FEEDBACK,
        x_base=2,
        table=TABLE,
    ),
    more_figures={
        "encodings": FigureLayout(
            x="task.vocab_size",
            panels=("task.kind", "task.rule"),
            lines="encoding.kind",
            metrics=("token_accuracy",),
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
