"""Parameters of language modelling; nothing here says where files lie."""

from abc import abstractmethod
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from pernn.config import Part, Registry
from pernn.interfaces import Task
from pernn.randomness import MAX_SEED
from pernn.tasks import TaskConfig

from .text import Corpus, Rules

WIKITEXT_103 = "wikitext-103"
NUM_ARTICLES = (28_475, 60, 60)


class CorpusConfig(Part):
    """What every corpus has; a third-party corpus derives its config from this."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the corpus, for folders and labels: letters, digits, `.`, `_` and `-`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Plain values that decide the text; what is only checked is not among them."""
        return self.dump()

    @property
    def expected_articles(self) -> tuple[int, int, int] | None:
        """Articles in the training, validation and test part; `None` leaves them unchecked."""
        return None

    @property
    def expected_digest(self) -> str | None:
        """SHA-256 of all paragraphs, each followed by a line feed; `None` leaves it unchecked."""
        return None

    @abstractmethod
    def build(self) -> Corpus:
        """Build the reader; it opens no file yet."""


CORPORA = Registry(
    "pernn.corpora",
    {
        "wikitext": "pernn.corpora.config:WikitextConfig",
        "grammar": "pernn.corpora.config:GrammarConfig",
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
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")] = WIKITEXT_103
    num_articles: tuple[int, int, int] | None = NUM_ARTICLES
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None

    @property
    def title(self) -> str:
        """Name of the corpus."""
        return self.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Plain values that decide the text."""
        return {"kind": self.kind, "name": self.name}

    @property
    def expected_articles(self) -> tuple[int, int, int] | None:
        """Articles in the training, validation and test part."""
        return self.num_articles

    @property
    def expected_digest(self) -> str | None:
        """SHA-256 of all paragraphs."""
        return self.digest

    @model_validator(mode="after")
    def _is_what_it_says(self) -> "WikitextConfig":
        if self.name == WIKITEXT_103 and self.num_articles != NUM_ARTICLES:
            raise ValueError(
                f"{WIKITEXT_103} has {NUM_ARTICLES} articles: give another text another name"
            )
        return self

    def build(self) -> Corpus:
        """Build the reader."""
        from .folders import raw_folder
        from .wikitext import Wikitext

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
    num_paragraphs: Annotated[int, Field(ge=1, le=2**24)] = 2000
    num_held_out: Annotated[int, Field(ge=1, le=2**24)] = 200
    num_words: Annotated[int, Field(ge=64, le=50_000)] = 600
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0

    @property
    def title(self) -> str:
        """Name of the corpus."""
        return "grammar"

    def build(self) -> Corpus:
        """Build the writer."""
        from .grammar import Grammar

        return Grammar(
            num_paragraphs=self.num_paragraphs,
            num_held_out=self.num_held_out,
            num_words=self.num_words,
            seed=self.seed,
        )


AnyCorpus = Annotated[SerializeAsAny[CorpusConfig], PlainValidator(CORPORA.validate)]
"""A field that takes any corpus by its kind."""


class LanguageModellingConfig(TaskConfig):
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
        vocab_size: Number of pieces; `as-written` the 256 bytes included.
        length: Most tokens of a paragraph that are used.
        corpus: Which text.
        rules: What of the text is used and scored; the preset's if absent.
    """

    kind: Literal["language_modelling"] = "language_modelling"
    vocab_size: Annotated[int, Field(ge=260, le=2**20)] = 32_768
    length: Annotated[int, Field(ge=1, le=2**16)] = 1024
    corpus: AnyCorpus = WikitextConfig()
    rules: Rules | None = None

    @property
    def effective_rules(self) -> Rules:
        """The rules; without any, and without a preset, those of `as-run`."""
        return self.rules or "as-run"

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for labels and for `name`."""
        return f"K={self.vocab_size} {super().sizes}"

    @property
    def name(self) -> str:
        """Canonical description: what the order of the data depends on beside the seed."""
        rules = "" if self.effective_rules == "as-written" else f" rules={self.effective_rules}"
        return f"{super().name} corpus={self.corpus.title}{rules}"

    def under(self, rare_share: float, text_rules: Rules) -> "LanguageModellingConfig":
        """Take the preset's rules where none are given."""
        return self if self.rules else self.model_copy(update={"rules": text_rules})

    def build(self) -> Task:
        """Build the task; its corpus is opened, or prepared, when data are first asked for."""
        from .language_modelling import LanguageModelling

        def open_corpus() -> Any:
            from .preparation import prepare

            return prepare(self)

        return LanguageModelling(
            name=self.name,
            vocab_size=self.vocab_size,
            length=self.length,
            rules=self.effective_rules,
            open_corpus=open_corpus,
        )
