"""Does the encoding help to name the token before another?

Source: Morita (2024), version 5, appendix A.3. The text gives no vocabulary sizes;
K = 512 … 1024 is kept, and the step of 128 is ours.
"""

from pernn.lab.runs import RunSpec

from .comparisons import by_core, encoding_helps, labels
from .experiment import Experiment
from .grids import DEMO_TRAINING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Place, with_primary

TASK = {"task.kind": "predecessor_query", "core.kind": "lstm"}


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: inputs half as long, few ids."""
    return grid(
        {**TASK, "task.length": 8, **widths(128), **DEMO_TRAINING, "training.iterations": 1_700},
        each("task.vocab_size", [16, 32, 48]),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    return grid(
        {**TASK, **SMALL, "training.iterations": 16_000},
        each("task.vocab_size", [8, 12, 16]),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, as far as texts tell, for GPUs."""
    return grid(
        {**TASK, "task.length": 16},
        each("task.vocab_size", [512, 640, 768, 896, 1024]),
        encodings(),
    )


FIGURE = by_core("task.vocab_size", "token_accuracy")

EXPERIMENT = Experiment(
    name="predecessor_query",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (encoding_helps("lstm", Place("v5", "appendix A.3")),), "encoding_helps_lstm"
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "lstm"),
)
