"""Does the encoding help to predict the next token?

`real_text` is ours: the annual messages of the presidents of the United States, whose words follow
a Zipf law of their own. If rare tokens are what the encoding helps with, their loss must gain more.

Source: Morita (2024), version 5, appendix E and Table 1.
"""

from dataclasses import replace
from functools import partial

from .comparisons import OURS, lay_out
from .experiment import Experiment
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    LSTM,
    SHORT_TRAINING,
    UPDATES,
    VOCABULARY,
    Settings,
    grids,
    widths,
)
from .predicates import (
    PLANNED,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Equivalent,
    Place,
    with_primary,
)

EARLY = (5, 10, 15)
"""Percent of the training that count as its beginning; every scale is evaluated there."""
LATER = tuple(range(35, 101, 5))
"""Percent of the training after 10,000 of 30,000 updates."""
NATS = 0.02
"""A difference of training losses below this, 2 % of perplexity, counts as none."""
V5 = Place("v5", "appendix E")
BASE: Settings = {"task.kind": "language_modelling", **LSTM}


def _generated(num_paragraphs: int, num_words: int, vocab_size: int) -> Settings:
    """Read text that pernn writes itself, so that nothing must be fetched."""
    corpus = {
        "kind": "grammar",
        "num_paragraphs": num_paragraphs,
        "num_held_out": num_paragraphs // 20,
        "num_words": num_words,
    }
    return {"task.corpus": corpus, VOCABULARY: vocab_size, "task.length": 64, **widths(128)}


def _for_updates(updates: int) -> Settings:
    """Measure test and training loss over the same twentieth of the updates."""
    interval = updates // 20
    return {
        UPDATES: updates,
        "training.evaluation_interval": interval,
        "training.log_interval": interval,
    }


by_update = partial(lay_out, "update", table="by_update", form="bands")
FIGURE = by_update("perplexity", y_base=2)
TRAINING_LOSS = by_update("train_loss")
FASTER = Claim(
    "faster_at_first",
    "At first the position-encoded LSTM's training loss falls slightly faster: it is below the "
    "vanilla one's.",
    V5,
    Differs("train_loss", {**LSTM, "percent": EARLY}, ENCODING, "percent", sign=-1),
    "by_update",
)
GONE = Claim(
    "difference_gone",
    "From about a third of the training on (10,000 of 30,000 updates) the training losses do not "
    "differ.",
    V5,
    Equivalent("train_loss", {**LSTM, "percent": LATER}, ENCODING, "percent", LATER, NATS, OURS),
    "by_update",
)
WORSE = Claim(
    "worse_at_last",
    "After training, the position-encoded LSTM has the higher test perplexity.",
    V5,
    Differs("perplexity", LSTM, ENCODING, "core.kind"),
)
PRINTED = replace(
    WORSE,
    source=Place("v5", "appendix E and Table 1"),
    paper_value="vanilla 37.7731, encoded 38.5384 (means over 5 trials)",
)

LANGUAGE_MODELLING = Experiment(
    name="language_modelling",
    scales=grids(
        BASE,
        # Minutes, and an hour, on two CPU cores, on generated text.
        demo=({**_generated(2_000, 600, 512), **DEMO_TRAINING, **_for_updates(300)},),
        small=({**_generated(10_000, 2_000, 1_024), **SHORT_TRAINING, **_for_updates(2_000)},),
        # WikiText-103, which must be there.
        paper=({VOCABULARY: 32_768, "task.length": 1_024, **_for_updates(30_000)},),
    ),
    claims=with_primary((FASTER, GONE, PRINTED), "worse_at_last"),
    figure=FIGURE,
    more_figures={
        "training_loss": TRAINING_LOSS,
        # Differences of thousands at the first tokens would hide all others.
        "by_position": lay_out(
            "position", "perplexity", contrast=None, x_base=2, table="by_position", y_base=2
        ),
    },
    labels={
        "position": "Token position (bin start)",
        "training_loss": "Training loss between evaluations",
        "train_loss": "Training loss, nats per token",
        "by_position": "Where in a paragraph does the encoding help?",
    },
)

RARITY = Contrast("tenth", treated=10, baseline=1)
"""The rarest tenth of the tokens, and the most frequent one."""
TENTHS = "by_frequency"

REAL_CLAIMS = (
    Claim(
        "same_loss",
        f"After training, the test losses of the two LSTMs differ by less than {NATS} nats (our "
        "check).",
        V5,
        Equivalent("loss", LSTM, ENCODING, "core.kind", PLANNED, NATS, OURS),
    ),
    Claim(
        "rare_gain_more",
        "The encoding lowers the test loss more for the rarest tenth of the tokens than for the "
        "most frequent one (our check).",
        V5,
        DiffersMore("loss", LSTM, ENCODING, RARITY, "core.kind", sign=-1),
        TENTHS,
    ),
    Claim(
        "rare_gain",
        "The encoding lowers the test loss for the rarest tenth of the tokens (our check).",
        V5,
        Differs("loss", {**LSTM, "tenth": RARITY.treated}, ENCODING, "tenth", sign=-1),
        TENTHS,
    ),
)

REAL_TEXT = Experiment(
    name="real_text",
    scales=grids(
        {**BASE, "task.corpus": {"kind": "sotu"}, "task.length": 64, **widths(128)},
        # Minutes, and an hour, on two CPU cores.
        demo=({VOCABULARY: 512, **DEMO_TRAINING, **_for_updates(200)},),
        small=({VOCABULARY: 4_096, **SHORT_TRAINING, **_for_updates(2_000)},),
    ),
    claims=with_primary((*REAL_CLAIMS, FASTER, WORSE), "same_loss", "rare_gain_more"),
    figure=lay_out("tenth", "loss", table=TENTHS),
    more_figures={"perplexity": FIGURE, "training_loss": TRAINING_LOSS},
    labels={
        "tenth": "Tenth of the tokens, frequent ones first",
        "loss": "Test loss, nats per token",
        "train_loss": "Training loss, nats per token",
        "perplexity": "Test perplexity",
        "training_loss": "Training loss between evaluations",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
