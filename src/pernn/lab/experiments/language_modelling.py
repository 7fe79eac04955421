"""Does the encoding help to predict the next token of a text?

Source: Morita (2024), version 5, appendix E and Table 1.
"""

from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import OURS, labels
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    SHORT_TRAINING,
    SMALL_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .predicates import Claim, Differs, Equivalent, Place, with_primary

BASE: Settings = {"task.kind": "language_modelling", "core.kind": "lstm"}
EARLY = (5, 10, 15)
"""Percent of the training that count as its beginning; every scale is evaluated there."""
LATER = tuple(range(35, 101, 5))
"""Percent of the training after 10,000 of 30,000 updates."""
NATS = 0.02
"""A difference of training losses below this, 2 % of perplexity, counts as none."""
V5 = Place("v5", "appendix E")
LSTM = {"core.kind": "lstm"}


def _generated(num_paragraphs: int, num_words: int, **sizes: int) -> Settings:
    """Read text that pernn writes itself, so that nothing must be fetched."""
    corpus = {
        "kind": "grammar",
        "num_paragraphs": num_paragraphs,
        "num_held_out": num_paragraphs // 20,
        "num_words": num_words,
    }
    return {"task.corpus": corpus, **{f"task.{name}": size for name, size in sizes.items()}}


def _evaluated_every(updates: int) -> Settings:
    """Measure test and training loss over the same updates."""
    return {"training.evaluation_interval": updates, "training.log_interval": updates}


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, on generated text."""
    text = _generated(2_000, 600, vocab_size=512, length=64)
    training = {"training.iterations": 300, **_evaluated_every(15)}
    return grid({**BASE, **text, **widths(128), **DEMO_TRAINING, **training}, encodings())


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores, on generated text."""
    text = _generated(10_000, 2_000, vocab_size=1_024, length=64)
    training = {**SHORT_TRAINING, "training.iterations": 2_000, **_evaluated_every(100)}
    base = {**BASE, **text, **widths(128), **training}
    return grid(base, encodings(), seeds=SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """WikiText-103, which must be there, for GPUs."""
    text = {"task.vocab_size": 32_768, "task.length": 1_024}
    training = {"training.iterations": 30_000, **_evaluated_every(1_500)}
    return grid({**BASE, **text, **training}, encodings())


FIGURE = FigureLayout(
    x="update",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("perplexity",),
    contrast=ENCODING,
    table="by_update",
    form="bands",
    y_base=2,
)
POSITIONS = FigureLayout(
    x="position",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("perplexity",),
    contrast=ENCODING,
    x_base=2,
    table="by_position",
    y_base=2,
)
TRAINING_LOSS = replace(FIGURE, metrics=("train_loss",), y_base=None)
FASTER = Claim(
    name="faster_at_first",
    statement="At first the position-encoded LSTM's training loss falls slightly faster: it is "
    "below the vanilla one's.",
    source=V5,
    predicate=Differs("train_loss", {**LSTM, "percent": EARLY}, ENCODING, cells="percent", sign=-1),
    table="by_update",
)
GONE = Claim(
    name="difference_gone",
    statement="From about a third of the training on (10,000 of 30,000 updates) the training "
    "losses do not differ.",
    source=V5,
    predicate=Equivalent(
        "train_loss",
        {**LSTM, "percent": LATER},
        ENCODING,
        cells="percent",
        required=LATER,
        margin=NATS,
        margin_origin=OURS,
    ),
    table="by_update",
)
WORSE = Claim(
    name="worse_at_last",
    statement="After training, the position-encoded LSTM has the higher test perplexity.",
    source=Place("v5", "appendix E and Table 1"),
    predicate=Differs("perplexity", LSTM, ENCODING, cells="core.kind"),
    paper_value="vanilla 37.7731, encoded 38.5384 (means over 5 trials)",
)
EXPERIMENT = Experiment(
    name="language_modelling",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary((FASTER, GONE, WORSE), "worse_at_last"),
    figure=FIGURE,
    more_figures={"training_loss": TRAINING_LOSS, "by_position": POSITIONS},
    labels={
        **labels(FIGURE, "lstm"),
        "position": "Token position (bin start)",
        "training_loss": "Training loss between evaluations",
        "train_loss": "Training loss, nats per token",
        "by_position": "Where in a paragraph does the encoding help?",
    },
)
