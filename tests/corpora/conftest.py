"""A data folder for all tests of the package, with one small corpus in it."""

import numpy as np
import pytest

from pernn.lab.corpora import GrammarConfig, LanguageModellingConfig, prepare
from pernn.lab.corpora.text import read_lines

MORE_WORDS = {"rules": "as-run", "corpus.num_words": 400}
"""Without pieces for bytes, few words make too few pieces."""
SMALL = LanguageModellingConfig(
    vocab_size=320,
    length=48,
    corpus=GrammarConfig(num_paragraphs=301, num_held_out=40, num_words=64),
    rules="as-written",
)


def paragraphs(lines):
    return (line.text for line in read_lines(lines) if not line.level)


def text_of(corpus, split, index):
    return corpus.pieces.decode(corpus.ids(split, index).astype(np.int64))


@pytest.fixture(scope="session")
def shared_root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PERNN_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def corpus(shared_root, monkeypatch):
    monkeypatch.setenv("PERNN_DATA", str(shared_root))
    return prepare(SMALL)


@pytest.fixture
def as_run(shared_root, monkeypatch):
    """A text as the published program takes it, as a task; prepared once."""
    monkeypatch.setenv("PERNN_DATA", str(shared_root))
    return SMALL.override(MORE_WORDS).build()
