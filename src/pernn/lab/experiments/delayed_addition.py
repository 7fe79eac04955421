"""Does the encoding help to reverse and add at once?

Source: Morita (2024), versions 2 and 3, appendix A.1 and figure 7.
"""

from pernn.lab.runs import RunSpec

from .comparisons import by_core, encoding_helps, gain_grows, labels
from .experiment import Experiment
from .grids import DEMO_TRAINING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Place, with_primary

SOURCE = (Place("v3", "appendix A.1 and Fig. 7"), Place("v5", "appendix A.1"))
TASK = {"task.kind": "delayed_addition", "core.kind": "lstm"}


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: inputs half as long."""
    return grid(
        {**TASK, "task.length": 8, **widths(128), **DEMO_TRAINING, "training.iterations": 1_200},
        each("task.vocab_size", [8, 16, 24]),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Half an hour on two CPU cores."""
    return grid(
        {**TASK, **SMALL},
        each("task.vocab_size", [8, 16, 32]),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, with twice the usual updates, for GPUs."""
    return grid(
        {**TASK, "task.length": 16, "training.iterations": 600_000},
        each("task.vocab_size", [896, 960, 1024, 1088]),
        encodings(),
    )


FIGURE = by_core("task.vocab_size", "token_accuracy")

EXPERIMENT = Experiment(
    name="delayed_addition",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (encoding_helps("lstm", SOURCE), gain_grows("lstm", SOURCE)), "encoding_helps_lstm"
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "lstm"),
)
