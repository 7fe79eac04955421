"""Does the encoding help to remember for longer?

Source: Morita (2024), version 1, appendix C.1 and figure 11.
"""

from pernn.lab.runs import RunSpec

from .comparisons import by_core, labels, no_gain
from .experiment import Experiment
from .grids import DEMO_TRAINING, ENCODING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Claim, EveryTrial, Place, with_primary

TASK = {"task.kind": "copying_memory", "task.vocab_size": 8, "core.kind": "lstm"}
HOLD_TIMES = (60, 70, 80, 90, 100)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: fewer tokens, held for less time."""
    return grid(
        {**TASK, "task.length": 4, **widths(128), **DEMO_TRAINING, "training.iterations": 1_000},
        each("task.hold_time", [5, 10, 20]),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores.

    Half as many tokens are held for less time.
    """
    return grid(
        {**TASK, **SMALL, "task.length": 5},
        each("task.hold_time", [20, 30, 40]),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid({**TASK, "task.length": 10}, each("task.hold_time", HOLD_TIMES), encodings())


V1 = Place("v1", "appendix C.1 and Fig. 11")
NO_HELP = Claim(
    name="no_help_lstm",
    statement="The encoding does not improve the LSTM's token accuracy.",
    source=V1,
    predicate=no_gain({"core.kind": "lstm"}, ENCODING, "task.hold_time"),
)


def _all_or_nothing(encoding: str, title: str) -> Claim:
    return Claim(
        name=f"all_or_nothing_{encoding}",
        statement=f"Every {title} LSTM ends perfect or at chance, 0.125.",
        source=V1,
        predicate=EveryTrial(
            "token_accuracy",
            {"encoding.kind": encoding, "task.length": 10},
            cells="task.hold_time",
            required=HOLD_TIMES,
            values=(1.0, 1 / 8),
            tolerance=0.01,
            tolerance_origin="ours: above the error of measuring a share in 10,240 tokens",
        ),
    )


FIGURE = by_core("task.hold_time", "token_accuracy", "solved", "stuck")

EXPERIMENT = Experiment(
    name="copying_memory",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            NO_HELP,
            _all_or_nothing("none", "vanilla"),
            _all_or_nothing("sinusoidal", "encoded"),
        ),
        "no_help_lstm",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "lstm"),
)
