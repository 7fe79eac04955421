"""Is the gain Adam's, or that of trained token vectors?

The larger a vocabulary, the rarer each token, and an optimiser may starve or overshoot the rows of
rare ones. Descent along signs treats all rows alike, and frozen vectors are not trained at all. The
rate is constant, and each network's own: `--tune training.learning_rate=LOW:HIGH:N`.

Source: ours, after Kunstner et al. (2024), "Heavy-tailed class imbalance and why Adam outperforms
gradient descent on language models"; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping, Sequence

from pernn.lab.runs import RunSpec

from .comparisons import CORES, labels
from .experiment import Experiment, FigureLayout
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, encodings, grid
from .learning_rate import COLUMN, PLACE
from .predicates import Claim, Contrast, Differs, DiffersMore, with_primary
from .temperature import BATCH, DEMO_PACED, HOT, SMALL_PACED

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


def specs(base: Settings, core: str, vocab_size: int, seeds: Sequence[int]) -> tuple[RunSpec, ...]:
    """Cross the arms and encodings at the hot cell."""
    shared = {**base, "core.kind": core, "task.vocab_size": vocab_size}
    arms = [
        {path: value for path, value in where.items() if value is not None}
        for _, where in ARMS.values()
    ]
    return grid({**shared, COLUMN: HOT[0], BATCH: HOT[1]}, arms, encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return specs(DEMO_PACED, "lstm", 16, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Half an hour on two CPU cores, more when tuned."""
    return specs({**SMALL_PACED, "training.iterations": 3_000}, "lstm", 192, SMALL_SEEDS)


def _helps(arm: str, name: str) -> Claim:
    said, where = ARMS[arm]
    return Claim(
        name=f"encoding_helps_{arm}",
        statement=f"The encoding raises the accuracy of the {name} that is trained {said} (our "
        "check).",
        source=PLACE,
        predicate=Differs("token_accuracy", where, ENCODING, "task.vocab_size"),
    )


def _gains_less(arm: str, name: str) -> Claim:
    said, where = ARMS[arm]
    ((column, treated),) = where.items()
    return Claim(
        name=f"gains_less_{arm}",
        statement=f"The {name} that is trained {said} gains less from the encoding than that by "
        "Adam (our check).",
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


def claims(core: str) -> tuple[Claim, ...]:
    """Return the claims of one core, the primary ones first."""
    name = CORES[core]
    less = [_gains_less(arm, name) for arm in ("sign", "frozen", "sgd")]
    return with_primary(
        (*less, *(_helps(arm, name) for arm in ARMS)), *(one.name for one in less[:2])
    )


FIGURE = FigureLayout(
    x="task.vocab_size",
    panels=(OPTIMIZER, FROZEN),
    lines="encoding.kind",
    metrics=("token_accuracy",),
    contrast=ENCODING,
)

EXPERIMENT = Experiment(
    name="other_optimizers",
    scales={"demo": demo, "small": small},
    claims=claims("lstm"),
    figure=FIGURE,
    labels=labels(FIGURE, "adam_0.999", "sgd", "sign"),
    rules={"demo": "2026-12", "small": "2026-12"},
)
