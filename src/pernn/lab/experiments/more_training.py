"""Do more training or larger batches replace the encoding?

The paper says that neither helps and shows no numbers; which vocabularies it means it does not say
either. Those of its frequency experiments are taken, where the vanilla networks fall short: 64 ids
for the GRU, 1024 for the LSTM. The encoded networks, with the normal training, stand beside them.

Source: Morita (2024), versions 2 and 3, section 4.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pernn.lab.runs import RunSpec

from .comparisons import CORES, labels, no_gain
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    SEEDS,
    SMALL,
    SMALL_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .predicates import Claim, Contrast, Place, with_primary

KINDS = ("gru", "lstm")
FACTORS = {
    "training.iterations": "Training for {:,} updates instead of {:,} does not improve",
    "training.batch_size": "Batches of {:,} sequences instead of {:,} do not improve",
}


@dataclass(frozen=True)
class Plan:
    """Normal training at one scale.

    Attributes:
        training: Updates and sequences per batch.
        vocabularies: Ids by core.
        base: Everything else.
        seeds: One trial of each condition for each of them.
    """

    training: dict[str, int]
    vocabularies: dict[str, int]
    base: Settings
    seeds: Sequence[int] = SEEDS

    def specs(self) -> tuple[RunSpec, ...]:
        """Return vanilla networks with more of either, and encoded ones.

        Of updates or batch size vanilla has 1, 2 and 4 times, the encoded network once.
        """
        vanilla, encoded = encodings()
        more = [{path: n * times} for path, n in self.training.items() for times in (2, 4)]
        cores = [{"core.kind": core, "task.vocab_size": self.vocabularies[core]} for core in KINDS]
        conditions = [vanilla, *({**vanilla, **one} for one in more), encoded]
        return grid({**self.base, **self.training}, cores, conditions, seeds=self.seeds)


PLANS = {
    "demo": Plan(
        training={"training.iterations": 240, "training.batch_size": 32},
        vocabularies={"gru": 8, "lstm": 16},
        base={"task.length": 16, **widths(128), **DEMO_TRAINING},
    ),
    "small": Plan(
        training={"training.iterations": 8_000, "training.batch_size": 64},
        vocabularies={"gru": 64, "lstm": 192},
        base=SMALL,
        seeds=SMALL_SEEDS,
    ),
    "paper": Plan(
        training={"training.iterations": 300_000, "training.batch_size": 512},
        vocabularies={"gru": 64, "lstm": 1024},
        base={},
    ),
}
"""`demo` and `small` take minutes and hours on two CPU cores; `paper` is meant for GPUs."""


def _neither_helps(scale: str, core: str, factor: str, times: int) -> Claim:
    training = PLANS[scale].training
    normal = training[factor]
    # The other factor stays normal.
    where = {path: value for path, value in training.items() if path != factor}
    return Claim(
        name=f"{factor.partition('.')[2]}_{times}x_{core}_{scale}",
        statement=(
            f"{FACTORS[factor].format(normal * times, normal)} the vanilla {CORES[core]} "
            f"({scale} scale)."
        ),
        source=(Place("v3", "section 4.2"), Place("v5", "section 4.1")),
        predicate=no_gain(
            {"core.kind": core, "encoding.kind": ENCODING.baseline, **where},
            Contrast(factor, treated=normal * times, baseline=normal),
            "task.vocab_size",
        ),
    )


FIGURE = FigureLayout(
    x="training.iterations",
    panels="core.kind",
    rows="training.batch_size",
    lines="encoding.kind",
    metrics=("token_accuracy",),
    x_base=2,
)

EXPERIMENT = Experiment(
    name="more_training",
    scales={scale: plan.specs for scale, plan in PLANS.items()},
    claims=with_primary(
        tuple(
            _neither_helps(scale, core, factor, times)
            for scale in ("paper", "small", "demo")
            for core in KINDS
            for factor in FACTORS
            for times in (2, 4)
        ),
        "iterations_4x_gru_small",
        "iterations_4x_lstm_small",
        "batch_size_4x_gru_small",
        "batch_size_4x_lstm_small",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS, "none", "sinusoidal"),
)
