"""Do longer training, larger batches or another optimiser replace the encoding?

The paper says that neither more training nor larger batches help and shows no numbers; which
vocabularies it means it does not say either. Those of its frequency experiments are taken, where
the vanilla networks fall short: 64 ids for the GRU, 1024 for the LSTM. The encoded networks, with
the normal training, stand beside them.

`other_optimizers`: the larger a vocabulary, the rarer each token, and an optimiser may starve or
overshoot the rows of rare ones. Descent along signs treats all rows alike, and frozen vectors are
not trained at all. The rate is constant, and each network's own:
`--tune training.learning_rate=LOW:HIGH:N`. `other_optimizers_gru` is near the setting of
`who_needs_a_clock`, where the GRU's gain is clear.

Source: Morita (2024), versions 2 and 3, section 4.2; optimisers are ours, after Kunstner et al.
(2024), "Heavy-tailed class imbalance and why Adam outperforms gradient descent on language models";
the question is that of version 3, figure 2.
"""

from collections.abc import Mapping, Sequence
from itertools import product

from .comparisons import ACCURACY, LABELS, PLACE, WORDS, claims_about, lay_out, no_gain
from .experiment import Experiment
from .grids import (
    BATCH,
    DEMO_PACED,
    DEMO_TRAINING,
    ENCODED,
    ENCODING,
    HOT,
    SMALL,
    SMALL_PACED,
    SMALL_SEEDS,
    UPDATES,
    VANILLA,
    VOCABULARY,
    Settings,
    at,
    cores,
    first_seeds,
    grids,
    kinds,
    widths,
)
from .predicates import Claim, Contrast, Differs, DiffersMore, Place, with_primary

TRAININGS = {
    "paper": {UPDATES: 300_000, BATCH: 512},
    "small": {UPDATES: 8_000, BATCH: 64},
    "demo": {UPDATES: 240, BATCH: 32},
}
"""Normal updates and sequences per batch."""
FACTORS = {
    UPDATES: "Training for {more:,} updates instead of {normal:,} does not improve",
    BATCH: "Batches of {more:,} sequences instead of {normal:,} do not improve",
}


def _conditions(scale: str) -> Sequence[Settings]:
    """Return vanilla networks with 1, 2 and 4 times the training, and encoded ones."""
    more = [{path: n * times} for path, n in TRAININGS[scale].items() for times in (2, 4)]
    return [VANILLA, *({**VANILLA, **one} for one in more), ENCODED]


def _neither_helps(scale: str, core: str, factor: str, times: int) -> list[Claim]:
    # The other factor stays normal.
    others = {path: value for path, value in TRAININGS[scale].items() if path != factor}
    normal = TRAININGS[scale][factor]
    said = FACTORS[factor].format(more=normal * times, normal=normal)
    contrast = Contrast(factor, treated=normal * times, baseline=normal)
    return claims_about(
        f"{factor.partition('.')[2]}_{times}x_{{core}}_{scale}",
        f"{said} the vanilla {{core}} ({scale} scale)",
        no_gain({**VANILLA, **others}, contrast, VOCABULARY),
        kinds(core),
        (Place("v3", "section 4.2"), Place("v5", "section 4.1")),
    )


CLAIMS = [
    claim
    for one in product(TRAININGS, ("gru", "lstm"), FACTORS, (2, 4))
    for claim in _neither_helps(*one)
]

MORE_TRAINING = Experiment(
    name="more_training",
    scales=grids(
        {},
        (),
        # Minutes, and hours, on two CPU cores.
        demo=(
            {"task.length": 16, **widths(128), **DEMO_TRAINING, **TRAININGS["demo"]},
            cores(gru=8, lstm=16),
            _conditions("demo"),
        ),
        small=({**SMALL, **TRAININGS["small"]}, cores(gru=64, lstm=192), _conditions("small")),
        paper=(TRAININGS["paper"], cores(gru=64, lstm=1024), _conditions("paper")),
    ),
    claims=with_primary(CLAIMS, "*_4x_*_small"),
    figure=lay_out(UPDATES, ACCURACY, rows=BATCH, contrast=None, x_base=2),
)

OPTIMIZER, FROZEN = "training.optimizer", "training.frozen_embedding"
ARMS: Mapping[str, tuple[str, Settings]] = {
    "adam": ("by Adam", {OPTIMIZER: None, FROZEN: None}),
    "adam_0.999": ("by Adam with a longer memory", {OPTIMIZER: "adam_0.999"}),
    "sgd": ("by gradient descent with momentum", {OPTIMIZER: "sgd"}),
    "sign": ("by descent along signs", {OPTIMIZER: "sign"}),
    "frozen": ("by Adam, its vectors of tokens frozen", {FROZEN: True}),
}
"""Arm → how sentences call the training, and what selects its trials."""
FRESH = first_seeds(24)[8:]
"""Seeds of which nothing was known at the GRU's setting."""


def _helps(arm: str, core: str) -> Claim:
    said, where = ARMS[arm]
    return Claim(
        f"encoding_helps_{arm}",
        f"The encoding raises the accuracy of the {WORDS[core]} that is trained {said} (our "
        "check).",
        PLACE,
        Differs(ACCURACY, where, ENCODING, VOCABULARY),
    )


def _gains_less(arm: str, core: str) -> Claim:
    said, where = ARMS[arm]
    ((column, treated),) = where.items()
    contrast = Contrast(column, treated, None, treated_where=where, baseline_where=ARMS["adam"][1])
    return Claim(
        f"gains_less_{arm}",
        f"The {WORDS[core]} that is trained {said} gains less from the encoding than that by Adam "
        "(our check).",
        PLACE,
        DiffersMore(ACCURACY, {}, ENCODING, contrast, VOCABULARY, sign=-1),
    )


def _experiment(
    name: str, core: str, sizes: tuple[int, int], updates: int, seeds: Sequence[int]
) -> Experiment:
    """Return arms × encodings of one core at the hot cell; a quarter or half of an hour."""
    arms = [{path: value for path, value in one.items() if value} for _, one in ARMS.values()]
    less = (_gains_less(arm, core) for arm in ("sign", "frozen", "sgd"))
    helps = (_helps(arm, core) for arm in ARMS)
    return Experiment(
        name=name,
        scales=grids(
            at(HOT),
            demo=(DEMO_PACED, cores(**{core: sizes[0]}), arms),
            small=({**SMALL_PACED, UPDATES: updates}, cores(**{core: sizes[1]}), arms),
            seeds={"small": seeds},
        ),
        claims=with_primary((*less, *helps), "gains_less_sign", "gains_less_frozen"),
        figure=lay_out(VOCABULARY, ACCURACY, panels=(OPTIMIZER, FROZEN)),
        labels={
            "None, None": "Adam",
            "None, True": "Adam, token vectors frozen",
            **{f"{name}, None": LABELS[name] for name in ("adam_0.999", "sgd", "sign")},
        },
        rules={"demo": "2026-12", "small": "2026-12"},
    )


OTHER_OPTIMIZERS = _experiment("other_optimizers", "lstm", (16, 192), 3_000, SMALL_SEEDS)
OTHER_OPTIMIZERS_GRU = _experiment("other_optimizers_gru", "gru", (8, 32), 1_000, FRESH)
