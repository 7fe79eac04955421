"""Does a network do without a code if it is fed its own outputs?

Source: Morita (2024), version 1, appendix B.2 and figures 7 and 8; appendix C.2 and figure 13.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import OURS
from .experiment import Experiment, FigureLayout
from .grids import DEMO_TRAINING, POWERS, SMALL_TRAINING, codes, each, grid, widths
from .predicates import AtLeast, AtMost, Claim, Contrast, Differs, Grows, Place

FEEDBACK = Contrast("feedback", treated="truth", baseline="own output")
"""Two rows of each trial's table: one network, measured twice."""
TABLE = "by_feedback"
RULES = {"reverse": "reversing", "sort": "sorting"}
TASK = {"task.kind": "autoregressive", "core.kind": "lstm"}
LARGE = tuple(size for size in POWERS if size >= 1024)
HALF = 0.5
"""The text calls one good and the other low, at a large K, and gives no number: our reading."""


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: a quarter of the length."""
    return grid(
        {**TASK, "task.length": 16, **widths(128), **DEMO_TRAINING, "training.iterations": 800},
        each("task.rule", list(RULES)),
        codes("none"),
        each("task.vocab_size", [4, 16, 64]),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {**TASK, "task.length": 32, **widths(128), **SMALL_TRAINING},
        each("task.rule", list(RULES)),
        codes("none"),
        each("task.vocab_size", [2, 8, 32, 128, 512, 2048]),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {**TASK, "task.length": 64},
        each("task.rule", list(RULES)),
        codes("none"),
        each("task.vocab_size", POWERS),
    )


def _source(rule: str) -> Place:
    return (
        Place("v1", "appendix B.2, Fig. 8")
        if rule == "reverse"
        else Place("v1", "appendix C.2, Fig. 13")
    )


def _truth_helps(rule: str) -> Claim:
    return Claim(
        name=f"truth_helps_{rule}",
        statement=f"In {RULES[rule]}, feeding back the truth beats feeding back the own output.",
        source=_source(rule),
        predicate=Differs("token_accuracy", {"task.rule": rule}, FEEDBACK, "task.vocab_size"),
        table=TABLE,
    )


def _gap_grows(rule: str) -> Claim:
    return Claim(
        name=f"gap_grows_{rule}",
        statement=f"In {RULES[rule]}, the truth's advantage over the own output grows with K.",
        source=_source(rule),
        predicate=Grows("token_accuracy", {"task.rule": rule}, FEEDBACK, along="task.vocab_size"),
        table=TABLE,
    )


def _falls(rule: str) -> Claim:
    return Claim(
        name=f"own_output_falls_{rule}",
        statement=f"In {RULES[rule]}, token accuracy with the own output falls with K.",
        source=_source(rule),
        predicate=Grows(
            "token_accuracy",
            {"task.rule": rule, "feedback": FEEDBACK.baseline},
            None,
            along="task.vocab_size",
            sign=-1,
        ),
        table=TABLE,
    )


def _good(rule: str) -> Claim:
    return Claim(
        name=f"truth_good_{rule}",
        statement=(
            f"In {RULES[rule]}, with the truth fed back half the tokens or more are right at "
            "every K from 1,024 on."
        ),
        source=_source(rule),
        predicate=AtLeast(
            "token_accuracy",
            {"task.rule": rule, "task.length": 64, "feedback": FEEDBACK.treated},
            cells="task.vocab_size",
            required=LARGE,
            threshold=HALF,
            threshold_origin=OURS,
        ),
        table=TABLE,
    )


def _poor(rule: str) -> Claim:
    return Claim(
        name=f"own_output_poor_{rule}",
        statement=(
            f"In {RULES[rule]}, with the own output fed back at most half the tokens are right at "
            "every K from 1,024 on."
        ),
        source=_source(rule),
        predicate=AtMost(
            "token_accuracy",
            {"task.rule": rule, "task.length": 64, "feedback": FEEDBACK.baseline},
            cells="task.vocab_size",
            required=LARGE,
            threshold=HALF,
            threshold_origin=OURS,
        ),
        table=TABLE,
    )


EXPERIMENT = Experiment(
    name="autoregressive",
    question=CATALOGUE["autoregressive"].question,
    source=CATALOGUE["autoregressive"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=tuple(
        claim(rule) for claim in (_truth_helps, _gap_grows, _falls, _good, _poor) for rule in RULES
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
    labels={
        "task.vocab_size": "Vocabulary size K",
        "task.rule": "Task",
        "feedback": "Fed back",
        "reverse": "Reverse ordering",
        "sort": "Sorting",
        "own output": "Own output",
        "truth": "Truth",
        "token_accuracy": "Token accuracy",
    },
)
