"""Parameters of language modelling."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from pernn.lab.interfaces import Task
from pernn.lab.tasks import TASKS, TaskConfig

from .config import AnyCorpus, WikitextConfig
from .text import Rules

if TYPE_CHECKING:
    from .preparation import EncodedCorpus


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
    references: ClassVar[tuple[str, ...]] = ("morita2024", "kudo2018")
    vocab_size: Annotated[int, Field(ge=260, le=2**20)] = 32_768
    length: Annotated[int, Field(ge=1, le=2**16)] = 1024
    corpus: AnyCorpus = WikitextConfig()
    rules: Rules | None = None

    @property
    def effective_rules(self) -> Rules:
        """The rules, by default those of `as-run`."""
        return self.rules or "as-run"

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
        from .preparation import check_source

        check_source(self)

    def build(self) -> Task:
        """Make the task, whose corpus is opened when data are asked for."""
        from .language_modelling import LanguageModelling

        def open_corpus() -> "EncodedCorpus":
            from .preparation import prepare

            return prepare(self)

        return LanguageModelling(
            name=self.name,
            vocab_size=self.vocab_size,
            length=self.length,
            rules=self.effective_rules,
            open_corpus=open_corpus,
        )


# `tasks` knows no corpora: who imports them has one task more.
TASKS.add("language_modelling", "pernn.lab.corpora.task_config:LanguageModellingConfig")
