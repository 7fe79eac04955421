"""A text of one's own: split, kept under a name, and part of the spec by its digest."""

import numpy as np
import pytest

from command_line import call
from corpora.conftest import text_of
from pernn.errors import ConfigError, CorruptError, MachineError
from pernn.lab.corpora import LanguageModellingConfig, TextConfig, keep_text, prepare, raw_folder
from pernn.lab.corpora.text import find_text, split_paragraphs
from pernn.lab.runs import RunSpec

TEXT = "".join(f"Paragraph {n} has\nthe word w{n % 7} twice: w{n % 7}.\n\n" for n in range(200))


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("PERNN_DATA", str(tmp_path / "data"))
    path = tmp_path / "Book.txt"
    path.write_text(TEXT)
    return path


def test_parts_are_in_the_texts_own_order_and_lose_nothing(book):
    config = keep_text(book, "book", share=0.1)
    parts = [(raw_folder("book") / f"{s}.txt").read_text() for s in ("train", "valid", "test")]
    assert [part.count("\n") for part in parts] == [160, 20, 20]
    assert "".join(parts).splitlines() == split_paragraphs(TEXT)
    assert parts[0].startswith("Paragraph 0 has the word w0 twice: w0.\n")
    # The same again changes nothing, another unit is another corpus of the same text.
    assert keep_text(book, "book", share=0.1) == config
    other = keep_text(book, "book", share=0.1, unit="characters")
    assert (other.digest, other.unit) == (config.digest, "characters")


def test_a_name_stands_for_the_text_with_its_digest(book):
    config = keep_text(book, "book")
    values = {"task.kind": "language_modelling", "task.vocab_size": 300, "task.corpus": "book"}
    spec = RunSpec().override(values)
    assert spec.dump()["task"]["corpus"] == config.dump()
    assert RunSpec.load(spec.dump()) == spec
    book.write_text(TEXT.replace("w3", "x3"))
    keep_text(book, "other")
    assert spec.override({"task.corpus": "other"}).fingerprint() != spec.fingerprint()
    with pytest.raises(ConfigError, match="another text, or another --share of it, has this name"):
        keep_text(book, "book")
    assert find_text("book")["digest"] == config.digest
    with pytest.raises(ConfigError, match="is a kind of corpus"):
        keep_text(book, "grammar")


def test_another_split_of_a_text_is_another_corpus(book):
    """Parts that were cut elsewhere have the same digest as a whole."""
    few = keep_text(book, "book", share=0.1)
    with pytest.raises(ConfigError, match="another --share of it"):
        keep_text(book, "book", share=0.2)
    many = keep_text(book, "more", share=0.2)
    assert (few.digest, few.paragraphs) == (many.digest, (160, 20, 20))
    assert many.paragraphs == (120, 40, 40)
    for split in ("train", "valid", "test"):
        part = raw_folder("more") / f"{split}.txt"
        (raw_folder("book") / f"{split}.txt").write_bytes(part.read_bytes())
    with pytest.raises(CorruptError, match="expected 160 paragraphs, got 120"):
        prepare(LanguageModellingConfig(vocab_size=300, corpus=few))


@pytest.mark.parametrize("rules", ["as-run", "as-written"])
def test_characters_are_tokens_and_come_back(book, rules):
    keep_text(book, "book", unit="characters")
    task = LanguageModellingConfig(vocab_size=320, corpus="book", rules=rules)
    corpus = prepare(task)
    assert corpus.vocab_size < 320
    first = split_paragraphs(TEXT)[0]
    assert text_of(corpus, "train", 0) == first
    # As the published program, one more for the space that it puts before the first word.
    assert len(corpus.ids("train", 0)) == len(first) + (rules == "as-run")
    batch = task.build().stream(1).train(0, 4)
    assert batch.tokens.max() <= 320
    assert np.issubdtype(batch.tokens.dtype, np.integer)


def test_pieces_are_learnt_from_the_training_part_and_a_misspelt_text_is_told(book):
    keep_text(book, "book")
    corpus = prepare(LanguageModellingConfig(vocab_size=300, corpus="book", rules="as-written"))
    assert corpus.vocab_size == 300
    assert text_of(corpus, "test", 0) in split_paragraphs(TEXT)
    keep_text(book, "book")
    with pytest.raises(ConfigError, match=r"no text 'bok' in .*\(known: book, ") as caught:
        RunSpec().override({"task.kind": "language_modelling", "task.corpus": "bok"})
    assert "did you mean 'book'?" in str(caught.value)
    assert "pernn prepare FILE --name bok" in str(caught.value)


def test_a_text_that_changed_or_is_gone_is_said(book):
    config = keep_text(book, "book")
    task = LanguageModellingConfig(vocab_size=300, corpus="book")
    train = raw_folder("book") / "train.txt"
    train.write_text(train.read_text().replace("w3", "x3"))
    with pytest.raises(ConfigError, match=f"expected digest {config.digest}"):
        prepare(task)
    train.unlink()
    with pytest.raises(MachineError, match="pernn prepare FILE"):
        prepare(task)
    about = raw_folder("book") / "text.json"
    for damage in ("{", "5", "[1]", "[" * 100_000):
        about.write_text(damage)
        for read in (lambda: find_text("book"), lambda: keep_text(book, "book")):
            with pytest.raises(CorruptError, match=r"text\.json: "):
                read()
    about.unlink()
    assert keep_text(book, "book") == config


def test_a_part_of_one_paragraph_may_look_like_a_title(book):
    book.write_text(TEXT.rpartition("\n\n")[0] + "\n\n= The End =\n")
    keep_text(book, "book", share=0.001)
    task = LanguageModellingConfig(vocab_size=300, corpus="book", rules="as-written")
    assert prepare(task).num_paragraphs("test") == 1


def test_a_part_without_a_token_to_predict_is_refused(book):
    words = (f"{n * 7919 % 46_656:x}" for n in range(600))
    book.write_text("\n".join([*(f"The {one} and the {one}s." for one in words), "❦"]))
    keep_text(book, "book", share=0.001)
    with pytest.raises(ConfigError, match="no paragraph of the test part has a token to predict"):
        prepare(LanguageModellingConfig(vocab_size=300, corpus="book", rules="as-run"))


@pytest.mark.parametrize(
    ("content", "share", "said"),
    [
        (b"One.\n\nTwo.", 0.1, "at least three paragraphs, got 2"),
        (b"", 0.1, "got 0"),
        (b"a\n\n\xff\xfe\n\nb", 0.1, "not UTF-8"),
        (TEXT.encode(), 0.5, "--share is invalid"),
    ],
)
def test_what_is_no_text_is_said(book, content, share, said):
    book.write_bytes(content)
    with pytest.raises((ConfigError, CorruptError), match=said):
        keep_text(book, "book", share=share)
    assert not raw_folder("book").exists()


def test_the_verb_says_how_to_use_it(book):
    done = call("prepare", book, cwd=book.parent)
    assert done.returncode == 0, done.stderr
    assert "--set task.corpus=book" in done.stdout
    assert "200 paragraphs kept in" in done.stdout
    assert "180 to train, 10 for validation, 10 for the test" in done.stdout
    named = call("prepare", book, "--name", "../evil", cwd=book.parent)
    assert (named.returncode, named.stderr.count("\n")) == (2, 1)
    assert "choose another --name" in named.stderr
    lost = call("prepare", "nowhere.txt", cwd=book.parent)
    assert lost.returncode == 2
    assert lost.stderr == (
        f"pernn: {book.parent}/nowhere.txt: no such file: expected one of UTF-8 text\n"
    )
    assert TextConfig(name="book", digest="0" * 64, paragraphs=(1, 1, 1)).title == "book"
