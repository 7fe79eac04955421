"""Does a Transformer need the clock more than recurrent networks do?

The reference beside `who_needs_a_clock`, at its setting, with whose trials it shares those of the
GRU and the LSTM. The rate is each network's own: `--tune training.learning_rate=LOW:HIGH:N`.

Source: ours; the paper's section 1 says that a Transformer relies on an external clock.
"""

from pernn.lab.runs import RunSpec

from .comparisons import CORES, by_core, encoding_helps, labels
from .experiment import Experiment
from .grids import SEEDS, SMALL_SEEDS
from .predicates import Claim, Place, with_primary
from .temperature import DEMO_PACED
from .who_needs_a_clock import SMALL_TRAINING, gains_more, specs

TRANSFORMER = "pernn.lab.reference:TransformerConfig"
KINDS = (TRANSFORMER, "gru", "lstm")
SOURCE = Place("v3", "section 1")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return specs({**DEMO_PACED, "training.iterations": 300}, [8], SEEDS, KINDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for ten minutes on two CPU cores, when tuned."""
    return specs(SMALL_TRAINING, [32], SMALL_SEEDS, KINDS)


def _gains_more(other: str) -> Claim:
    return Claim(
        name=f"gains_more_than_{other}",
        statement=f"The {CORES[TRANSFORMER]} gains more from the encoding than the {CORES[other]} "
        "(our check).",
        source=SOURCE,
        predicate=gains_more(TRANSFORMER, other),
    )


PRIMARY = (_gains_more("gru"), _gains_more("lstm"))
FIGURE = by_core("core.kind", "token_accuracy")

EXPERIMENT = Experiment(
    name="transformer",
    scales={"demo": demo, "small": small},
    claims=with_primary(
        (*PRIMARY, *(encoding_helps(core, SOURCE) for core in KINDS)),
        *(one.name for one in PRIMARY),
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
    rules={"demo": "2026-12", "small": "2026-12"},
)
