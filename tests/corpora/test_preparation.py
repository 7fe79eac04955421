"""Preparing a corpus: exact, deterministic, whole or absent."""

import io
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from corpora.conftest import MORE_WORDS, SMALL, paragraphs, text_of
from pernn.errors import ConfigError, CorruptError, MachineError, VersionError
from pernn.lab.corpora import (
    EncodedCorpus,
    Grammar,
    LanguageModellingConfig,
    Pieces,
    WikitextConfig,
    prepare,
    raw_folder,
    train_pieces,
)
from pernn.lab.corpora.preparation import FILES, MANIFEST, folder_of, seal
from pernn.lab.corpora.text import SPLITS, read_lines

LITTLE = Grammar(num_paragraphs=120, num_held_out=20, num_words=64)


def write(grammar, folder):
    """Write all parts under the names that WikiText-103 has."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        text = "".join(line + "\n" for line in grammar.lines(split))
        (folder / f"wiki.{split}.raw").write_bytes(text.encode())


TRAIN_TEXT = list(paragraphs(LITTLE.lines("train")))


@pytest.fixture(scope="module")
def pieces():
    return Pieces(train_pieces(TRAIN_TEXT, 320))


def little(**values):
    return LanguageModellingConfig(
        vocab_size=320,
        corpus=WikitextConfig(**{"name": "little", "num_articles": None, **values}),
        rules="as-written",
    )


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


@given(st.text(st.sampled_from("▁ aé\0\r\u2028戦") | st.characters(exclude_categories=["Cs"])))
@example("▁")
@example(" a▁▁b ▁")
def test_any_text_comes_back(pieces, text):
    (ids,) = pieces.encode([text])
    assert pieces.decode(ids.astype(np.int64)) == text


def test_paragraphs_come_back_exactly_and_long_ones_are_trained_on(corpus):
    for split in SPLITS:
        expected = list(paragraphs(SMALL.corpus.build().lines(split)))
        found = [text_of(corpus, split, index) for index in range(corpus.num_paragraphs(split))]
        assert found == expected
        assert corpus.lengths(split).min() > 0
    assert max(corpus.lengths("train")) > SMALL.length
    # Longer than the 4,192 bytes at which SentencePiece by default drops a sentence.
    model = Pieces(train_pieces([*TRAIN_TEXT, " qqqq" * 2000], 320))
    assert len(model.encode([" qqqq"])[0]) <= 2


def test_the_same_text_gives_the_same_bytes_and_other_parameters_another_folder(corpus, root):
    again = prepare(SMALL)
    assert again.folder != corpus.folder
    assert contents(again.folder) == contents(corpus.folder)
    assert (again.folder / MANIFEST).read_bytes() == (corpus.folder / MANIFEST).read_bytes()
    assert again.digest == corpus.digest
    folders = {
        folder_of(SMALL.override(changes))
        for changes in ({}, {"vocab_size": 321}, {"corpus.seed": 1}, {"rules": "as-run"})
    }
    assert len(folders) == 4
    assert {folder.parent for folder in folders} == {root / "prepared"}


def test_as_run_the_pieces_are_sentencepieces_own(as_run, corpus):
    prepared = as_run.corpus
    assert prepared.folder != corpus.folder
    assert prepared.manifest["rules"] == "as-run"
    lines = SMALL.override(MORE_WORDS).corpus.build().lines("train")
    kept = (line.removesuffix(" ") for line in lines if line.strip() and line[:2] != " =")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=kept, model_writer=written, vocab_size=320, minloglevel=2
    )
    own = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    text = " Qx ▁ ﬁ 戦 of the"
    assert prepared.pieces.encode([text])[0].tolist() == own.encode(text)
    assert 0 in own.encode(text)  # no byte fallback
    # The library's normaliser: a ligature is two letters, and the space before is not kept.
    assert prepared.pieces.decode(np.array(own.encode(" a  ﬁ"))) in ("a fi", "a \u2047 fi", "a ⁇")


def test_as_run_paragraphs_without_a_target_are_left_out(root):
    write(Grammar(num_paragraphs=301, num_held_out=20, num_words=400), raw_folder("little"))
    path = raw_folder("little") / "wiki.test.raw"
    path.write_text(path.read_text() + " 戦 \n \n 戦戦 \n")
    lines = list(read_lines(WikitextConfig(name="little", num_articles=None).build().lines("test")))
    known = prepare(little().override({"rules": "as-run"}))
    expected = sum(line.is_kept("as-run") for line in lines) - 2
    assert known.num_paragraphs("test") == known.manifest["num_paragraphs"]["test"] == expected


def test_parquet_and_raw_text_give_equal_corpora(root):
    write(LITTLE, raw_folder("little"))
    folder = raw_folder("columns")
    folder.mkdir(parents=True)
    for split, name in [("train", "train"), ("valid", "validation"), ("test", "test")]:
        rows = [f"{line}\n" if line.strip() else "" for line in LITTLE.lines(split)]
        half = len(rows) // 2
        for number, part in enumerate([rows[:half], rows[half:]]):
            table = pa.table({"text": part})
            parquet.write_table(table, folder / f"{name}-0000{number}-of-00002.parquet")
    raw, columns = prepare(little()), prepare(little(name="columns"))
    assert contents(raw.folder) == contents(columns.folder)
    assert raw.digest == columns.digest
    assert set(raw.manifest["sources"]) == {f"wiki.{split}.raw" for split in SPLITS}


def test_missing_files_and_packages_are_named_and_how_to_get_them(root, monkeypatch):
    with pytest.raises(MachineError) as caught:
        prepare(LanguageModellingConfig())
    message = str(caught.value)
    for word in ("wiki.train.raw", "train-*.parquet", "Salesforce/wikitext", "CC BY-SA"):
        assert word in message
    assert not [*root.iterdir()]
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MachineError, match=r"pip install .*\[language\]'"):
        prepare(SMALL)


def test_articles_are_counted_and_a_digest_is_checked(root):
    write(LITTLE, raw_folder("little"))
    digest = prepare(little()).manifest["text_sha256"]
    stages = []
    assert prepare(little(digest=digest), lambda *stage: stages.append(stage))
    # What is only checked does not have the text prepared anew.
    assert stages == []
    with pytest.raises(ConfigError, match=f"expected digest {'0' * 64}, found {digest}"):
        prepare(little(digest="0" * 64))
    write(LITTLE, raw_folder("little"))
    write(LITTLE, raw_folder("wikitext-103"))
    with pytest.raises(ConfigError, match=r"expected num_articles \(28475, 60, 60\), found \("):
        prepare(LanguageModellingConfig(vocab_size=320))
    with pytest.raises(ConfigError, match=r"expected num_articles \(1, 2, 3\)"):
        prepare(little(num_articles=(1, 2, 3)))
    found = tuple(prepare(little()).manifest["num_articles"][split] for split in SPLITS)
    assert prepare(little(num_articles=found)).num_paragraphs("train") == 120


def test_other_raw_text_is_not_taken_for_what_was_prepared(root):
    write(LITTLE, raw_folder("little"))
    folder = prepare(little()).folder
    other = raw_folder("little") / "wiki.train.raw"
    content = other.read_bytes()
    other.write_bytes(content + b" one more .\n")
    with pytest.raises(ConfigError, match="prepared from other files") as caught:
        prepare(little())
    assert str(folder) in str(caught.value)
    other.unlink()
    assert prepare(little()).folder == folder  # which is all that is needed


def test_what_fails_leaves_nothing(root):
    write(LITTLE, raw_folder("little"))
    with pytest.raises(ConfigError, match=r"vocab_size 100000 does not fit .*too high"):
        prepare(little().override({"vocab_size": 100_000}))
    assert [path.suffix for path in (root / "prepared").iterdir()] == [".lock"]
    (raw_folder("little") / "wiki.test.raw").unlink()
    parquet.write_table(pa.table({"x": [1]}), raw_folder("little") / "test-0.parquet")
    with pytest.raises(CorruptError, match="column 'text'"):
        prepare(little())


@pytest.fixture
def copied(corpus, tmp_path):
    for name in [*FILES, MANIFEST]:
        (tmp_path / name).write_bytes((corpus.folder / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
@pytest.mark.parametrize("change", ["flip", "cut", "remove"])
def test_a_changed_file_is_refused(copied, name, change):
    path = copied / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if change == "remove":
        path.unlink()
    else:
        path.write_bytes(content if change == "flip" else content[:-3])
    with pytest.raises(CorruptError, match="delete the folder"):
        EncodedCorpus(copied)


def test_a_newer_format_is_refused(copied):
    manifest = json.loads((copied / MANIFEST).read_text())
    del manifest["manifest_sha256"]
    (copied / MANIFEST).write_text(json.dumps(seal({**manifest, "format": 2})))
    with pytest.raises(VersionError, match="newer pernn"):
        EncodedCorpus(copied)


PROGRAM = """
import sys, time
from pernn.lab.corpora import LanguageModellingConfig, prepare
def hear(stage, done, total):
    print(stage, flush=True)
    if stage == sys.argv[2]:
        time.sleep(60)
spec = LanguageModellingConfig.load(__import__("json").loads(sys.argv[1]))
print(prepare(spec, hear).digest, flush=True)
"""


def start(config, stop_at=""):
    command = [sys.executable, "-c", PROGRAM, json.dumps(config.dump()), stop_at]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


@pytest.mark.parametrize("stage", ["reading valid", "training the pieces", "encoding test"])
def test_a_kill_leaves_nothing_and_the_next_call_succeeds(corpus, root, stage):
    with start(SMALL, stage) as process:
        for line in process.stdout:
            if line.strip() == stage:
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    left = list((root / "prepared").iterdir())
    assert all(path.name.startswith(".") for path in left)
    assert [path for path in left if path.suffix == ".partial"]
    assert prepare(SMALL).digest == corpus.digest


def test_two_processes_at_once_make_one_corpus(corpus, root):
    processes = [start(SMALL), start(SMALL)]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [lines[-1] for lines in outputs] == [corpus.digest] * 2
    assert sum("training the pieces" in lines for lines in outputs) == 1
    assert [path.name for path in (root / "prepared").glob("[!.]*")] == [corpus.folder.name]
