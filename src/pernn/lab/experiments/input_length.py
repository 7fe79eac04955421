"""Does the encoding help with longer inputs?

Source: Morita (2024), version 1, figure 3 and section 4.1.
"""

from pernn.lab.runs import RunSpec

from .comparisons import CORES, by_core, falls, labels, no_gain
from .experiment import Experiment
from .grids import DEMO_TRAINING, ENCODING, SMALL, SMALL_SEEDS, each, encodings, grid, widths
from .predicates import Claim, Place, with_primary

KINDS = ["elman", "gru", "lstm"]
V1 = Place("v1", "section 4.1 and Fig. 3")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: shorter inputs and fewer updates than elsewhere."""
    shorter = {"training.iterations": 600, "task.vocab_size": 2}
    # Two tokens of length 8 make 256 sequences: some must be left to train on.
    held_out = {"task.num_held_out": 64}
    return grid(
        {"task.length": 32, **widths(128), **DEMO_TRAINING, **shorter, **held_out},
        each("task.length", [8, 16, 32]),
        each("core.kind", KINDS),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores."""
    return grid(
        {**SMALL, "task.vocab_size": 2, "task.length": 16},
        each("task.length", [16, 24, 32]),
        each("core.kind", KINDS),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {"task.vocab_size": 2},
        each("task.length", [64, 128, 256, 512]),
        each("core.kind", KINDS),
        encodings(),
    )


def _no_help(core: str) -> Claim:
    return Claim(
        name=f"no_help_{core}",
        statement=f"At K = 2, the encoding does not help the {CORES[core]} with longer inputs.",
        source=V1,
        predicate=no_gain({"core.kind": core, "task.vocab_size": 2}, ENCODING, "task.length"),
    )


def _below(core: str) -> Claim:
    return Claim(
        name=f"below_{core}",
        statement=f"The encoded {CORES[core]} scores below the vanilla one at K = 2.",
        source=V1,
        predicate=no_gain(
            {"core.kind": core, "task.vocab_size": 2}, ENCODING, "task.length", margin=0.0
        ),
    )


def _degrades(encoding: str, title: str) -> Claim:
    return Claim(
        name=f"lstm_degrades_{encoding}",
        statement=f"The {title} LSTM's token accuracy falls with the input length.",
        source=V1,
        predicate=falls(
            {"core.kind": "lstm", "encoding.kind": encoding, "task.vocab_size": 2},
            along="task.length",
        ),
    )


FIGURE = by_core("task.length", "token_accuracy", x_base=2)

EXPERIMENT = Experiment(
    name="input_length",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            *(_no_help(core) for core in KINDS),
            _below("elman"),
            _below("gru"),
            _degrades("none", "vanilla"),
            _degrades("sinusoidal", "encoded"),
        ),
        "no_help_elman",
        "no_help_gru",
        "no_help_lstm",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
)
