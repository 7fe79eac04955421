"""Corpora: language data as one more task. Never loads torch."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .config import (
    CORPORA as CORPORA,
    CorpusConfig as CorpusConfig,
    GrammarConfig as GrammarConfig,
    SotuConfig as SotuConfig,
    TextConfig as TextConfig,
    WikitextConfig as WikitextConfig,
)
from .task_config import LanguageModellingConfig as LanguageModellingConfig

if TYPE_CHECKING:
    from .folders import (
        data_root as data_root,
        prepared_folder as prepared_folder,
        raw_folder as raw_folder,
    )
    from .grammar import Grammar as Grammar
    from .language_modelling import (
        LanguageModelling as LanguageModelling,
        ParagraphStream as ParagraphStream,
    )
    from .own_text import SHARE as SHARE, keep_text as keep_text
    from .pieces import Pieces as Pieces, train_pieces as train_pieces
    from .preparation import EncodedCorpus as EncodedCorpus, prepare as prepare
    from .text import (
        SPLITS as SPLITS,
        Corpus as Corpus,
        Wikitext as Wikitext,
        heading_level as heading_level,
        paragraphs as paragraphs,
    )

__getattr__ = exports(__name__)
