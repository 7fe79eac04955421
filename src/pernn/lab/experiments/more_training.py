"""Do more training or larger batches replace the encoding?

The paper says that neither helps and shows no numbers; which vocabularies it means it does not say
either. Those of its frequency experiments are taken, where the vanilla networks fall short: 64 ids
for the GRU, 1024 for the LSTM. The encoded networks, with the normal training, stand beside them.

Source: Morita (2024), versions 2 and 3, section 4.2.
"""

from collections.abc import Sequence

from .comparisons import claims_about, labels, lay_out, no_gain
from .experiment import Experiment
from .grids import (
    BATCH,
    DEMO_TRAINING,
    ENCODING,
    SMALL,
    Settings,
    cores,
    encodings,
    grids,
    kinds,
    widths,
)
from .predicates import Claim, Contrast, Place, with_primary

UPDATES = "training.iterations"
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
    vanilla, encoded = encodings()
    more = [{path: n * times} for path, n in TRAININGS[scale].items() for times in (2, 4)]
    return [vanilla, *({**vanilla, **one} for one in more), encoded]


def _neither_helps(scale: str, core: str, factor: str, times: int) -> list[Claim]:
    # The other factor stays normal.
    where = {path: value for path, value in TRAININGS[scale].items() if path != factor}
    normal = TRAININGS[scale][factor]
    said = FACTORS[factor].format(more=normal * times, normal=normal)
    return claims_about(
        f"{factor.partition('.')[2]}_{times}x_{{core}}_{scale}",
        f"{said} the vanilla {{core}} ({scale} scale)",
        lambda here: no_gain(
            {**here, "encoding.kind": ENCODING.baseline, **where},
            Contrast(factor, treated=normal * times, baseline=normal),
            "task.vocab_size",
        ),
        kinds(core),
        (Place("v3", "section 4.2"), Place("v5", "section 4.1")),
    )


FIGURE = lay_out(UPDATES, "token_accuracy", rows=BATCH, contrast=None, x_base=2)

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
    claims=with_primary(
        [
            claim
            for scale in TRAININGS
            for core in ("gru", "lstm")
            for factor in FACTORS
            for times in (2, 4)
            for claim in _neither_helps(scale, core, factor, times)
        ],
        "*_4x_*_small",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, "gru", "lstm", "none", "sinusoidal"),
)
