"""Does the gain remain at each network's best learning rate?

`vocabulary_size` trains every network at one rate. Here validation seeds choose among seven for
each core, vocabulary and encoding, and the other seeds are compared at the chosen rates. They need
no trial at another rate: claims look at no others.

Source: ours; section 6 of docs/evidence/plan.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import by_core, encoding_helps, labels
from .experiment import Experiment
from .grids import (
    DEMO_TRAINING,
    MASTERY_TRAINING,
    SMALL_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .learning_rate import COLUMN, PLACE
from .predicates import Claim
from .tuning import at_best, at_values, over_values

VOCABULARIES = {"gru": (32, 64, 128), "lstm": (128, 256, 512)}
RATES = (0.0018, 0.0025, 0.0035, 0.005, 0.007, 0.01, 0.014)
"""A factor of 1.4 apart, around the best two of `learning_rate`."""
PAPER_RATES = (0.00018, 0.00025, 0.00035, 0.0005, 0.0007, 0.001, 0.0014)
"""The published rate and smaller ones, as many and as far apart."""


def _cells(vocabularies: Mapping[str, Sequence[int]]) -> list[Settings]:
    return [
        {"core.kind": core, "task.vocab_size": size}
        for core, sizes in vocabularies.items()
        for size in sizes
    ]


def demo() -> tuple[RunSpec, ...]:
    """Return trials for minutes on two CPU cores.

    Two rates at the start of the training test no claim.
    """
    base = {"task.length": 8, **widths(64), **DEMO_TRAINING, "training.iterations": 300}
    return at_values(grid(base, _cells(VOCABULARIES), encodings()), COLUMN, (0.0035, 0.01))


def small() -> tuple[RunSpec, ...]:
    """Return trials for a night on two CPU cores, at chosen rates.

    The networks are those of `vocabulary_size`.
    """
    base = {"task.length": 8, **widths(64), **MASTERY_TRAINING}
    trials = grid(base, _cells(VOCABULARIES), encodings(), seeds=SMALL_SEEDS)
    return at_values(trials, COLUMN, RATES)


def paper() -> tuple[RunSpec, ...]:
    """Return the published sizes where vanilla falls short, for GPUs."""
    sizes = {"gru": (64, 256), "lstm": (1_024, 16_384)}
    return at_values(grid({}, _cells(sizes), encodings()), COLUMN, PAPER_RATES)


def _helps(core: str) -> Claim:
    plain = at_best(encoding_helps(core, PLACE), COLUMN, "token_accuracy")
    predicate = replace(plain.predicate, required=VOCABULARIES[core])
    return replace(plain, predicate=predicate, primary=True)


FIGURE = over_values(
    by_core("task.vocab_size", "token_accuracy", x_base=2), COLUMN, ("core.kind", "task.vocab_size")
)

HEADLINE = replace(FIGURE, contrast=None, where={"task.vocab_size": (128, 512)})
"""One row: each network at the vocabulary that tells most of it."""

EXPERIMENT = Experiment(
    name="tuned_vocabulary_size",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=tuple(_helps(core) for core in VOCABULARIES),
    figure=FIGURE,
    more_figures={"headline": HEADLINE},
    labels={
        "headline": "Reversing 8 random tokens, at each peak learning rate",
        **labels(FIGURE, *VOCABULARIES),
    },
)
