"""Does the code help to predict the next token of a text?

Source: Morita (2024), version 4, section 6.5 and table 1.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import labels
from .experiment import Experiment, FigureLayout
from .grids import CODE, DEMO_TRAINING, SMALL_TRAINING, Settings, codes, grid, widths
from .predicates import Claim, Differs, Place

BASE: Settings = {"task.kind": "language_modelling", "core.kind": "lstm"}
EARLY = (5, 10, 15)
"""Percent of the training that count as its beginning; every scale is evaluated there."""
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


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, on generated text."""
    text = _generated(2_000, 600, vocab_size=512, length=64)
    training = {"training.iterations": 300, "training.evaluation_interval": 15}
    return grid({**BASE, **text, **widths(128), **DEMO_TRAINING, **training}, codes())


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores, on generated text."""
    text = _generated(40_000, 5_000, vocab_size=4_096, length=256)
    training = {"training.iterations": 3_000, "training.evaluation_interval": 150}
    return grid({**BASE, **text, **widths(256), **SMALL_TRAINING, **training}, codes())


def paper() -> tuple[RunSpec, ...]:
    """WikiText-103, which must be there; meant for GPUs."""
    text = {"task.vocab_size": 32_768, "task.length": 1_024}
    training = {"training.iterations": 30_000, "training.evaluation_interval": 1_500}
    return grid({**BASE, **text, **training}, codes())


FIGURE = FigureLayout(
    x="update",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("perplexity",),
    contrast=CODE,
    table="by_update",
    form="bands",
    y_base=2,
)
POSITIONS = FigureLayout(
    x="position",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("perplexity",),
    contrast=CODE,
    x_base=2,
    table="by_position",
    y_base=2,
)
EXPERIMENT = Experiment(
    name="language_modelling",
    question=CATALOGUE["language_modelling"].question,
    source=CATALOGUE["language_modelling"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        Claim(
            name="faster_at_first",
            statement="At first the position-encoded LSTM has the lower test perplexity.",
            source=Place("v5", "section 6.5"),
            predicate=Differs(
                "perplexity", {**LSTM, "percent": EARLY}, CODE, cells="percent", sign=-1
            ),
            table="by_update",
        ),
        Claim(
            name="worse_at_last",
            statement="At the end of training it has the higher one.",
            source=Place("v5", "table 1"),
            predicate=Differs("perplexity", LSTM, CODE, cells="core.kind", sign=1),
        ),
    ),
    figure=FIGURE,
    more_figures={"by_position": POSITIONS},
    labels={
        **labels(FIGURE, "lstm"),
        "position": "Place in the paragraph, from",
        "by_position": "Where in a paragraph does the code help?",
    },
)
