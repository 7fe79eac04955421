"""Does the code help where the order of the inputs does not matter?

Source: Morita (2024), versions 2 and 3, appendix A.2 and figure 8; version 1, appendix C.2 and
figure 12.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import CORES, by_core, code_helps, labels, no_gain
from .experiment import Experiment
from .grids import CODE, DEMO_TRAINING, POWERS, SMALL_TRAINING, codes, each, grid, widths
from .predicates import AtLeast, Claim, Differs, Grows, Place

KINDS = ["elman", "gru", "lstm"]
LARGE = tuple(size for size in POWERS if size >= 512)
CONDITIONS = [(core, code) for core in KINDS for code in ("none", "sinusoidal")]
MARGINAL = 0.1
"""The text calls the gain marginal and gives no number; less than ten points is our reading."""


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: a quarter of the length."""
    return grid(
        {
            "task.kind": "sorting",
            "task.length": 16,
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 380,
        },
        each("task.vocab_size", [4, 16, 64]),
        each("core.kind", KINDS),
        codes(),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {"task.kind": "sorting", "task.length": 32, **widths(128), **SMALL_TRAINING},
        each("task.vocab_size", [2, 8, 32, 64, 128, 512]),
        each("core.kind", KINDS),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {"task.kind": "sorting"},
        each("task.vocab_size", POWERS),
        each("core.kind", KINDS),
        codes(),
    )


def _title(core: str, code: str) -> str:
    return f"{'vanilla' if code == CODE.baseline else 'encoded'} {CORES[core]}"


def _marginal(core: str) -> Claim:
    return Claim(
        name=f"marginal_{core}",
        statement=f"The code's gain for the {CORES[core]} is marginal: less than ten points.",
        source=(Place("v3", "appendix A.2"), Place("v1", "appendix C.2")),
        predicate=no_gain({"core.kind": core}, CODE, "task.vocab_size", margin=MARGINAL),
    )


def _falls(core: str, code: str) -> Claim:
    return Claim(
        name=f"falls_{core}_{code}",
        statement=f"The {_title(core, code)}'s token accuracy falls with K from K = 512 on.",
        source=Place("v1", "appendix C.2"),
        predicate=Grows(
            "token_accuracy",
            {"core.kind": core, "encoding.kind": code, "task.vocab_size": LARGE},
            None,
            along="task.vocab_size",
            sign=-1,
        ),
    )


def _tolerates(core: str) -> Claim:
    return Claim(
        name=f"tolerates_large_{core}",
        statement=f"For K = 512 … 16,384 the encoded {CORES[core]} is above the vanilla one.",
        source=Place("v1", "appendix C.2"),
        predicate=Differs(
            "token_accuracy",
            {"core.kind": core, "task.vocab_size": LARGE},
            CODE,
            cells="task.vocab_size",
        ),
    )


def _ascends(core: str, code: str) -> Claim:
    return Claim(
        name=f"ascends_{core}_{code}",
        statement=f"At every K, over 99.9 % of the {_title(core, code)}'s outputs ascend.",
        source=Place("v1", "appendix C.2"),
        predicate=AtLeast(
            "ascending_share",
            {"core.kind": core, "encoding.kind": code},
            cells="task.vocab_size",
            required=POWERS,
            threshold=0.999,
            threshold_origin="the text's",
        ),
    )


ELMAN_AT_64 = Claim(
    name="elman_gains_at_64",
    statement="At K = 64 the code raises the Elman network's accuracy (by 2.09 points on average).",
    source=Place("v1", "appendix C.2"),
    predicate=Differs(
        "token_accuracy",
        {"core.kind": "elman", "task.vocab_size": 64},
        CODE,
        cells="task.vocab_size",
    ),
)

FIGURE = by_core("task.vocab_size", "token_accuracy", "ascending_share", x_base=2)

EXPERIMENT = Experiment(
    name="sorting",
    question=CATALOGUE["sorting"].question,
    source=CATALOGUE["sorting"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(code_helps(core, (Place("v3", "Fig. 8"), Place("v1", "Fig. 12"))) for core in KINDS),
        *(_marginal(core) for core in KINDS),
        ELMAN_AT_64,
        *(_tolerates(core) for core in ("gru", "lstm")),
        *(_falls(*condition) for condition in CONDITIONS),
        *(_ascends(*condition) for condition in CONDITIONS),
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
)
