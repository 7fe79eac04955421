"""Does the encoding help with a real text and rare words?

The text is the annual messages of the presidents of the United States, whose words follow a Zipf
law of their own: if rare tokens are what the encoding helps with, their loss must gain more.

Source: ours; the question is that of Morita (2024), version 5, appendix E and table 1.
"""

from collections.abc import Sequence
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import OURS, labels
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    SEEDS,
    SHORT_TRAINING,
    SMALL_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .language_modelling import BASE, FASTER, FIGURE, LSTM, NATS, TRAINING_LOSS, V5, WORSE
from .predicates import PLANNED, Claim, Contrast, Differs, DiffersMore, Equivalent, with_primary

TABLE = "by_frequency"
RAREST, COMMONEST = 10, 1
"""Tenths of the tokens, in the order of their frequency."""


def _specs(
    vocab_size: int, updates: int, training: Settings, seeds: Sequence[int]
) -> tuple[RunSpec, ...]:
    text = {"task.corpus": {"kind": "sotu"}, "task.vocab_size": vocab_size, "task.length": 64}
    interval = updates // 20
    paced = {
        "training.iterations": updates,
        "training.evaluation_interval": interval,
        "training.log_interval": interval,
    }
    return grid({**BASE, **text, **widths(128), **training, **paced}, encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return _specs(512, 200, DEMO_TRAINING, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    return _specs(4_096, 2_000, SHORT_TRAINING, SMALL_SEEDS)


CLAIMS = (
    Claim(
        name="same_loss",
        statement=f"After training, the test losses of the two LSTMs differ by less than {NATS} "
        "nats (our check).",
        source=V5,
        predicate=Equivalent(
            "loss", LSTM, ENCODING, "core.kind", PLANNED, margin=NATS, margin_origin=OURS
        ),
    ),
    Claim(
        name="rare_gain_more",
        statement="The encoding lowers the test loss more for the rarest tenth of the tokens than "
        "for the most frequent one (our check).",
        source=V5,
        predicate=DiffersMore(
            "loss",
            LSTM,
            ENCODING,
            Contrast("tenth", treated=RAREST, baseline=COMMONEST),
            "core.kind",
            sign=-1,
        ),
        table=TABLE,
    ),
    Claim(
        name="rare_gain",
        statement="The encoding lowers the test loss for the rarest tenth of the tokens (our "
        "check).",
        source=V5,
        predicate=Differs("loss", {**LSTM, "tenth": RAREST}, ENCODING, "tenth", sign=-1),
        table=TABLE,
    ),
    FASTER,
    replace(WORSE, source=V5, paper_value=None),
)

EXPERIMENT = Experiment(
    name="real_text",
    scales={"demo": demo, "small": small},
    claims=with_primary(CLAIMS, "same_loss", "rare_gain_more"),
    figure=FigureLayout(
        x="tenth",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("loss",),
        contrast=ENCODING,
        table=TABLE,
    ),
    more_figures={"perplexity": FIGURE, "training_loss": TRAINING_LOSS},
    labels={
        **labels(FIGURE, "lstm"),
        "tenth": "Tenth of the tokens, frequent ones first",
        "loss": "Test loss, nats per token",
        "train_loss": "Training loss, nats per token",
        "perplexity": "Test perplexity",
        "training_loss": "Training loss between evaluations",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
