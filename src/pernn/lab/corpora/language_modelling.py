"""Language modelling as a task: every token of a paragraph is predicted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64
from pydantic import Field

from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions, Table
from pernn.lab.metrics import group, token_accuracy
from pernn.lab.tasks import TASKS
from pernn.randomness import RandomStream
from pernn.randomness import Split as Purpose

from .config import PreparedConfig
from .pieces import UNKNOWN
from .preparation import EncodedCorpus, check_source, prepare
from .text import Rules, Split

Losses = Float64[np.ndarray, "paragraphs scored"]


class LanguageModellingConfig(PreparedConfig):
    """Predict each token of a paragraph from those before it.

    Picture (a paragraph of 5 tokens):
        input  BOS  8 29  2 11
        target   8 29  2 11  5

    That is `as-written`: BOS is a learnable row, the id K, and paragraphs of a batch are filled up
    with it behind their end, where nothing is scored. `as-run` there is no BOS: the second token is
    the first that is predicted, a token of the unknown piece is none that counts, and lines that
    begin with ` =` are no paragraphs. There is no query.

    Source: Morita (2024), version 5, appendix E; the published program for `as-run`.

    Attributes:
        length: Most tokens of a paragraph that are used.
    """

    kind: Literal["language_modelling"] = "language_modelling"
    references: ClassVar[tuple[str, ...]] = ("morita2024", "kudo2018")
    length: Annotated[int, Field(ge=2, le=2**16)] = 1024

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for people and for `name`."""
        return f"K={self.vocab_size} {super().sizes}"

    @property
    def name(self) -> str:
        """Canonical description, which with the seed decides the data's order."""
        rules = "" if self.effective_rules == "as-written" else f" rules={self.effective_rules}"
        return f"{super().name} corpus={self.corpus.title}{rules}"

    def under(self, rare_share: float, text_rules: Rules) -> "LanguageModellingConfig":
        """Take the preset's rules where none are given."""
        return self if self.rules else self.model_copy(update={"rules": text_rules})

    def check_data(self) -> None:
        """Refuse a corpus that is neither prepared nor can be prepared here."""
        check_source(self)

    def build(self) -> "LanguageModelling":
        """Make the task, whose corpus is opened when data are asked for."""
        return LanguageModelling(
            name=self.name,
            vocab_size=self.vocab_size,
            length=self.length,
            rules=self.effective_rules,
            open_corpus=lambda: prepare(self),
        )


# `tasks` knows no corpora: who imports them has one task more.
TASKS.builtin["language_modelling"] = "pernn.lab.corpora.language_modelling:LanguageModellingConfig"


@dataclass(frozen=True, kw_only=True)
class LanguageModelling:
    """Predict each token of a paragraph from those before it: a `Task`.

    Args:
        name: Canonical description; decides the order of the training paragraphs.
        vocab_size: Number of pieces.
        length: Most tokens of a paragraph that are used.
        open_corpus: Gives the corpus; called when its data are first needed, so that making the
            task costs nothing.
        rules: `as-written`: a BOS row comes first, and every token is predicted. `as-run`: tokens
            from the second on are predicted, but none of the unknown piece.
    """

    name: str
    vocab_size: int
    length: int
    open_corpus: Callable[[], EncodedCorpus]
    rules: Rules = "as-written"
    network: Literal["queried"] = "queried"
    num_queries: ClassVar[int] = 0

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Name the row that begins a paragraph and pads shorter ones."""
        return ("BOS",) if self.rules == "as-written" else ()

    @property
    def num_steps(self) -> int:
        """Number of time steps of the longest sequence."""
        return self.length if self.rules == "as-written" else self.length - 1

    @property
    def num_scored(self) -> int:
        """Number of targets of the longest sequence."""
        return self.num_steps

    @cached_property
    def corpus(self) -> EncodedCorpus:
        """The corpus, opened on first use."""
        return self.open_corpus()

    def batch(self, split: Split, indices: Int64[np.ndarray, " batch"]) -> Batch:
        """Return these paragraphs, filled up to the longest of them."""
        rows = [self.corpus.ids(split, int(index), self.length) for index in indices]
        width = max(len(row) for row in rows)
        ids = np.full((len(rows), width), UNSCORED, dtype=np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        if self.rules == "as-written":
            begun = np.full((len(rows), 1), self.vocab_size, dtype=np.int64)
            tokens, targets = np.concatenate([begun, ids[:, :-1]], axis=1), ids
            return Batch(np.where(targets == UNSCORED, self.vocab_size, tokens), 0, targets)
        tokens, targets = ids[:, :-1], np.where(ids == UNKNOWN, UNSCORED, ids)[:, 1:]
        return Batch(np.where(ids[:, 1:] == UNSCORED, UNKNOWN, tokens), 0, targets)

    def stream(self, seed: int) -> "ParagraphStream":
        """Return the data of one seed."""
        return ParagraphStream(self, seed)


class ParagraphStream:
    """The paragraphs of one task in one seed's order.

    Every epoch shows each training paragraph once, in an order of its own. Update n shows the
    places n·b … (n + 1)·b − 1 of all epochs in a row, so a batch may belong to two of them, and
    there is no cursor to save.

    Args:
        task: What to show.
        seed: In which order.
    """

    def __init__(self, task: LanguageModelling, seed: int) -> None:
        self.task, self.seed = task, seed
        self._words = RandomStream(seed, task.name, Purpose.TRAIN)
        # A batch may belong to two epochs.
        self._order = lru_cache(maxsize=2)(self._draw_order)

    @property
    def digest(self) -> str:
        """SHA-256 of the prepared corpus, for the records of a run."""
        return self.task.corpus.digest

    def train(self, step: int, batch_size: int) -> Batch:
        """Return the training batch of update `step`, counted from 0."""
        count = self.task.corpus.num_paragraphs("train")
        places = np.arange(step * batch_size, (step + 1) * batch_size)
        epochs, within = places // count, places % count
        chosen = np.empty(batch_size, dtype=np.int64)
        for epoch in np.unique(epochs).tolist():
            rows = epochs == epoch
            chosen[rows] = self._order(epoch)[within[rows]]
        return self.task.batch("train", chosen)

    def _draw_order(self, epoch: int) -> Int64[np.ndarray, " paragraphs"]:
        words = self._words.words(epoch, self.task.corpus.num_paragraphs("train"))
        return np.argsort(words, kind="stable")

    def test(self) -> Batch:
        """Return all paragraphs of the test part, shortest first."""
        order = np.argsort(self.task.corpus.lengths("test"), kind="stable")
        return self.task.batch("test", order)

    def measure(self, predictions: Predictions) -> Measurement:
        """Measure the answers to `test`.

        Returns:
            `perplexity`, exp of the mean nats per token, and `token_accuracy` in [0, 1]. Table
            `by_position`: from which time step on (1, 2, 4, 8 … up to the next row's), perplexity
            there, and how many tokens are predicted there. Table `by_frequency`: the tenth of the
            training part, in the order of its pieces' frequency, from which the target is, the mean
            loss in nats and the number of targets.
        """
        targets = self.test().targets
        scored = targets != UNSCORED
        metrics = {
            "perplexity": perplexity(predictions.losses[scored]),
            "token_accuracy": token_accuracy(predictions.values, targets),
        }
        tenths = frequency_tenths(self.task.corpus.counts("train"))[targets[scored]]
        tables = {
            "by_position": by_position(predictions.losses, scored),
            "by_frequency": by_frequency(predictions.losses[scored], tenths),
        }
        return Measurement(metrics, tables)


def perplexity(losses: Float64[np.ndarray, " tokens"]) -> float:
    """Return exp of the mean loss in nats."""
    return float(np.exp(losses.mean()))


def by_position(losses: Losses, scored: Bool[np.ndarray, "paragraphs scored"]) -> Table:
    """Return the perplexity by position, in ranges from powers of two.

    Position 2^k, if it is the last one, belongs to the row before.
    """
    width = losses.shape[1]
    positions = np.minimum(np.arange(width) + 1, max(1, width - 1))
    edges = np.broadcast_to(2 ** np.log2(positions).astype(np.int64), scored.shape)
    found = group(losses[scored], edges[scored])
    return {
        "position": [edge for (edge,) in found],
        "perplexity": [perplexity(some) for some in found.values()],
        "num_tokens": [some.size for some in found.values()],
    }


def frequency_tenths(counts: Int64[np.ndarray, " ids"]) -> Int64[np.ndarray, " ids"]:
    """Return in which tenth of all tokens an id lies, frequent first."""
    order = np.argsort(-counts, kind="stable")
    ends = np.cumsum(counts[order])
    tenths = np.empty(len(counts), dtype=np.int64)
    tenths[order] = (2 * ends - counts[order]) * 5 // max(1, int(ends[-1]))
    return np.minimum(tenths, 9)


def by_frequency(
    losses: Float64[np.ndarray, " tokens"], tenths: Int64[np.ndarray, " tokens"]
) -> Table:
    """Return the mean loss by the target's frequency, frequent tenths first."""
    found = group(losses, tenths + 1)
    return {
        "tenth": [tenth for (tenth,) in found],
        "loss": [float(some.mean()) for some in found.values()],
        "num_tokens": [some.size for some in found.values()],
    }
