"""Many tokens against long inputs, at equal information.

The number of possible inputs, K^L, is the same everywhere: 2^768 at paper scale, as 768 = 2·384 =
3·256 = 6·128 = 12·64. (The text prints 2^796 for the first one: a slip, as 4^384 is 2^768.)

Source: Morita (2024), version 1, figure 4 and section 4.1.
"""

from pernn.lab.runs import RunSpec

from .comparisons import by_core, gain_grows, labels
from .experiment import Experiment
from .grids import DEMO_TRAINING, SMALL, SMALL_SEEDS, Settings, encodings, grid, widths
from .predicates import Place, with_primary

PAPER_BITS = 768


def _vocabularies(bits: int, *sizes: int) -> list[Settings]:
    """Pair each vocabulary with the length at which K^L is 2^bits."""
    return [
        {"task.vocab_size": size, "task.length": bits // (size.bit_length() - 1)} for size in sizes
    ]


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: an eighth of the paper's lengths."""
    return grid(
        {"core.kind": "lstm", **widths(128), **DEMO_TRAINING, "training.iterations": 450},
        _vocabularies(PAPER_BITS // 8, 4, 8, 64),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores.

    The lengths are a sixteenth of the paper's.
    """
    return grid(
        {"core.kind": "lstm", **SMALL},
        _vocabularies(PAPER_BITS // 16, 2, 4, 8, 64, 4096),
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid({"core.kind": "lstm"}, _vocabularies(PAPER_BITS, 2, 4, 8, 64, 4096), encodings())


FIGURE = by_core("task.vocab_size", "token_accuracy", x_base=2)

EXPERIMENT = Experiment(
    name="constant_information",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (gain_grows("lstm", Place("v1", "section 4.1 and Fig. 4")),), "gain_grows_lstm"
    ),
    figure=FIGURE,
    labels={
        **labels(FIGURE, "lstm"),
        "task.vocab_size": "Vocabulary size K, with L such that K^L is constant",
    },
)
