"""Is the gain Adam's, or that of trained token vectors?

The larger a vocabulary, the rarer each token, and an optimiser may starve or overshoot the rows of
rare ones. Descent along signs treats all rows alike, and frozen vectors are not trained at all. The
rate is constant, and each network's own: `--tune training.learning_rate=LOW:HIGH:N`.

`other_optimizers_gru` is near the setting of `who_needs_a_clock`, where the GRU's gain is clear.

Source: ours, after Kunstner et al. (2024), "Heavy-tailed class imbalance and why Adam outperforms
gradient descent on language models"; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping, Sequence

from .comparisons import CORES, PLACE, labels, lay_out
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODING,
    HOT,
    SMALL_PACED,
    SMALL_SEEDS,
    Settings,
    at,
    cores,
    first_seeds,
    grids,
)
from .predicates import Claim, Contrast, Differs, DiffersMore, with_primary

OPTIMIZER, FROZEN = "training.optimizer", "training.frozen_embedding"
ARMS: Mapping[str, tuple[str, Settings]] = {
    "adam": ("by Adam", {OPTIMIZER: None, FROZEN: None}),
    "adam_0.999": ("by Adam with a longer memory", {OPTIMIZER: "adam_0.999"}),
    "sgd": ("by gradient descent with momentum", {OPTIMIZER: "sgd"}),
    "sign": ("by descent along signs", {OPTIMIZER: "sign"}),
    "frozen": ("by Adam, its vectors of tokens frozen", {FROZEN: True}),
}
"""Arm → how sentences call the training, and what selects its trials."""
ADAM = ARMS["adam"][1]
FRESH = first_seeds(24)[8:]
"""Seeds of which nothing was known at the GRU's setting."""


def _helps(arm: str, core: str) -> Claim:
    said, where = ARMS[arm]
    return Claim(
        name=f"encoding_helps_{arm}",
        statement=f"The encoding raises the accuracy of the {CORES[core]} that is trained {said} "
        "(our check).",
        source=PLACE,
        predicate=Differs("token_accuracy", where, ENCODING, "task.vocab_size"),
    )


def _gains_less(arm: str, core: str) -> Claim:
    said, where = ARMS[arm]
    ((column, treated),) = where.items()
    return Claim(
        name=f"gains_less_{arm}",
        statement=f"The {CORES[core]} that is trained {said} gains less from the encoding than "
        "that by Adam (our check).",
        source=PLACE,
        predicate=DiffersMore(
            "token_accuracy",
            {},
            ENCODING,
            Contrast(column, treated, None, treated_where=where, baseline_where=ADAM),
            "task.vocab_size",
            sign=-1,
        ),
    )


FIGURE = lay_out("task.vocab_size", "token_accuracy", panels=(OPTIMIZER, FROZEN))


def _experiment(
    name: str, core: str, sizes: tuple[int, int], updates: int, seeds: Sequence[int]
) -> Experiment:
    """Return arms × encodings of one core at the hot cell; a quarter or half of an hour."""
    arms = [{path: value for path, value in one.items() if value} for _, one in ARMS.values()]
    return Experiment(
        name=name,
        scales=grids(
            at(HOT),
            demo=(DEMO_PACED, cores(**{core: sizes[0]}), arms),
            small=(
                {**SMALL_PACED, "training.iterations": updates},
                cores(**{core: sizes[1]}),
                arms,
            ),
            seeds={"small": seeds},
        ),
        claims=with_primary(
            (
                *(_gains_less(arm, core) for arm in ("sign", "frozen", "sgd")),
                *(_helps(arm, core) for arm in ARMS),
            ),
            "gains_less_sign",
            "gains_less_frozen",
        ),
        figure=FIGURE,
        labels=labels(FIGURE, "adam_0.999", "sgd", "sign"),
        rules={"demo": "2026-12", "small": "2026-12"},
    )


OTHER_OPTIMIZERS = _experiment("other_optimizers", "lstm", (16, 192), 3_000, SMALL_SEEDS)
OTHER_OPTIMIZERS_GRU = _experiment("other_optimizers_gru", "gru", (8, 32), 1_000, FRESH)
