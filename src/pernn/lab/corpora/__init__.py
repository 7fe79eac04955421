"""Corpora: language data as one more task. Never loads torch."""

from pernn.lazy import exports

from .config import (
    CORPORA as CORPORA,
    CorpusConfig as CorpusConfig,
    GrammarConfig as GrammarConfig,
    SotuConfig as SotuConfig,
    TextConfig as TextConfig,
    WikitextConfig as WikitextConfig,
)
from .grammar import Grammar as Grammar
from .language_modelling import (
    LanguageModelling as LanguageModelling,
    LanguageModellingConfig as LanguageModellingConfig,
    ParagraphStream as ParagraphStream,
)
from .pieces import Pieces as Pieces, train_pieces as train_pieces
from .preparation import (
    SHARE as SHARE,
    EncodedCorpus as EncodedCorpus,
    keep_text as keep_text,
    prepare as prepare,
)
from .text import (
    SPLITS as SPLITS,
    Corpus as Corpus,
    Wikitext as Wikitext,
    data_root as data_root,
    heading_level as heading_level,
    raw_folder as raw_folder,
)

__getattr__ = exports(__name__)
