"""Corpora: language data as one more task. Never loads torch; SentencePiece only to prepare."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    CORPORA,
    CorpusConfig,
    GrammarConfig,
    WikitextConfig,
)
from .task_config import LanguageModellingConfig

if TYPE_CHECKING:
    from .encoded import EncodedCorpus
    from .folders import data_root, prepared_folder, raw_folder
    from .grammar import Grammar
    from .language_modelling import LanguageModelling, ParagraphStream
    from .pieces import Pieces, train_pieces
    from .preparation import prepare
    from .text import Corpus, heading_level, paragraphs
    from .wikitext import Wikitext

__all__ = [
    "CORPORA",
    "Corpus",
    "CorpusConfig",
    "EncodedCorpus",
    "Grammar",
    "GrammarConfig",
    "LanguageModelling",
    "LanguageModellingConfig",
    "ParagraphStream",
    "Pieces",
    "Wikitext",
    "WikitextConfig",
    "data_root",
    "heading_level",
    "paragraphs",
    "prepare",
    "prepared_folder",
    "raw_folder",
    "train_pieces",
]

__getattr__ = exports(
    __name__,
    {
        "Corpus": ".text",
        "EncodedCorpus": ".encoded",
        "Grammar": ".grammar",
        "LanguageModelling": ".language_modelling",
        "ParagraphStream": ".language_modelling",
        "Pieces": ".pieces",
        "Wikitext": ".wikitext",
        "data_root": ".folders",
        "heading_level": ".text",
        "paragraphs": ".text",
        "prepare": ".preparation",
        "prepared_folder": ".folders",
        "raw_folder": ".folders",
        "train_pieces": ".pieces",
    },
)
