"""Preparation: own texts kept, and text → pieces → memory-mapped ids."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64, UInt16, UInt32

from pernn.errors import ConfigError, CorruptError, StoreError
from pernn.lab.store import (
    check_format,
    checksum,
    make_directory,
    read_json_if_any,
    storing,
    sync,
    to_json,
    write_atomically,
)

from .config import CORPORA, CorpusConfig, TextConfig, Unit
from .pieces import CHARACTERS, UNKNOWN, Pieces, library, settings, train_pieces
from .text import (
    ABOUT,
    SPLITS,
    Corpus,
    Rules,
    Split,
    data_root,
    find_text,
    raw_folder,
    raw_lines,
    read_lines,
    reading,
    sha256,
    split_paragraphs,
)

FORMAT = 1
"""Version of a prepared folder; a larger number is refused."""
MANIFEST, MODEL = "manifest.json", "pieces.model"

IDS, OFFSETS = "{}.ids.bin", "{}.offsets.bin"
"""Files of each part: ids, and where paragraphs begin."""
FILES = (MODEL, *(name.format(split) for split in SPLITS for name in (IDS, OFFSETS)))

Ids = UInt16[np.ndarray, " pieces"] | UInt32[np.ndarray, " pieces"]


def ids_type(vocab_size: int) -> str:
    """Choose the narrowest of two types that holds every id."""
    return "<u2" if vocab_size <= 2**16 else "<u4"


def seal(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add a manifest's own digest."""
    return {**manifest, "manifest_sha256": checksum(manifest)}


class EncodedCorpus:
    """Ids of three parts, read when they are asked for.

    Args:
        folder: What `prepare` made. Every file is read once to compare its SHA-256, which costs
            about a second per gigabyte.

    Raises:
        CorruptError: If a file is missing or does not hold what was written.
        VersionError: If a newer pernn prepared it.
        StoreError: If a file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = self._read_manifest()
        for name in FILES:
            self._check(name)
        self.vocab_size: int = self.manifest["vocab_size"]

    @property
    def digest(self) -> str:
        """SHA-256 of the pieces and of all ids."""
        files = self.manifest["files"]
        return checksum({name: files[name] for name in FILES})

    @property
    def has_characters(self) -> bool:
        """True if tokens are characters: fewer may exist than asked for."""
        return bool(self.manifest["pieces"]["model_type"] == CHARACTERS["model_type"])

    def num_paragraphs(self, split: Split) -> int:
        """Count the paragraphs of a part."""
        return len(self._offsets[split]) - 1

    def lengths(self, split: Split) -> Int64[np.ndarray, " paragraphs"]:
        """Return the number of pieces of each paragraph."""
        return np.diff(self._offsets[split])

    def ids(self, split: Split, index: int, max_length: int | None = None) -> Ids:
        """Return a paragraph's ids, at most `max_length`, read-only.

        Raises:
            IndexError: If there is no such paragraph.
        """
        if not 0 <= index < self.num_paragraphs(split):
            raise IndexError(f"{split} has no paragraph {index}")
        start, stop = (int(edge) for edge in self._offsets[split][index : index + 2])
        if max_length is not None:
            stop = min(stop, start + max_length)
        return self._ids[split][start:stop]

    def counts(self, split: Split) -> Int64[np.ndarray, " pieces"]:
        """Count how often each piece occurs in a part."""
        return np.bincount(self._ids[split], minlength=self.vocab_size)

    def text(self, split: Split, index: int) -> str:
        """Return one paragraph of the raw text, without trailing space.

        Raises:
            MachineError: If SentencePiece is missing.
        """
        return self.pieces.decode(self.ids(split, index).astype(np.int64))

    @cached_property
    def pieces(self) -> Pieces:
        """The model that the text was encoded with."""
        with storing(self.folder):
            return Pieces((self.folder / MODEL).read_bytes())

    @cached_property
    def _ids(self) -> dict[Split, Ids]:
        kind = ids_type(self.vocab_size)
        return {split: self._map(IDS.format(split), kind) for split in SPLITS}

    @cached_property
    def _offsets(self) -> dict[Split, Int64[np.ndarray, " edges"]]:
        return {split: self._map(OFFSETS.format(split), "<i8") for split in SPLITS}

    def _map(self, name: str, kind: str) -> Any:
        with storing(self.folder / name):
            return np.memmap(self.folder / name, dtype=kind, mode="r")

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            manifest = read_json_if_any(path)
            if manifest is not None:
                check_format(path, manifest, FORMAT)
        except CorruptError:
            raise self._corrupt(MANIFEST, "is not a manifest") from None
        if manifest is None:
            raise self._corrupt(MANIFEST, "is missing")
        if manifest.pop("manifest_sha256", None) != checksum(manifest):
            raise self._corrupt(MANIFEST, "is not what was written")
        return manifest

    def _check(self, name: str) -> None:
        try:
            found = sha256(self.folder / name)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise self._corrupt(name, "is missing") from None
            raise
        if found != self.manifest["files"].get(name):
            raise self._corrupt(name, "is not what was written")

    def _corrupt(self, name: str, what: str) -> CorruptError:
        return CorruptError(
            f"{self.folder / name} {what}: delete the folder {self.folder} to have the corpus "
            "prepared again"
        )


Hear = Callable[[str, int, int], None]
"""Is told what is being done, how many paragraphs are done, and of how many; 0 if unknown."""

PARAGRAPHS_AT_ONCE = 4096


@runtime_checkable
class Preparable(Protocol):
    """Settings of a prepared corpus, as in `LanguageModellingConfig`."""

    @property
    def corpus(self) -> CorpusConfig:
        """The text."""

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""

    @property
    def effective_rules(self) -> Rules:
        """The part of the text that is used."""


def prepare(config: Preparable, hear: Hear = lambda stage, done, total: None) -> EncodedCorpus:
    """Open a task's corpus, prepared now if it never was.

    If another process is preparing it, this one waits and then takes what the other has made.

    Args:
        config: The task; the number of its pieces and its corpus matter.
        hear: Told of the progress.

    Raises:
        MachineError: If the raw text or an optional package is missing.
        ConfigError: If the text is another than the config says.
        CorruptError: If the raw text cannot be read, or what was prepared has changed on disk.
        VersionError: If a newer pernn prepared it.
        StoreError: If a file cannot be read or written.
    """
    folder = folder_of(config)
    check_source(config)
    if not folder.exists():
        corpus = config.corpus.build()
        with storing(folder), _only_here(folder, hear):
            if not folder.exists():
                _make(folder, corpus, config, hear)
    corpus_on_disk = EncodedCorpus(folder)
    manifest = corpus_on_disk.manifest
    _verify(config.corpus, manifest["num_articles"], manifest["text_sha256"])
    return corpus_on_disk


def check_source(config: Preparable) -> None:
    """Refuse a task whose corpus is not prepared, and cannot be.

    Raises:
        MachineError: If the raw text or an optional package is missing.
    """
    if not folder_of(config).exists():
        library()
        config.corpus.build().sources()


def folder_of(config: Preparable) -> Path:
    """Return the folder of a task's corpus, prepared or not."""
    rules = config.effective_rules
    parameters = {
        "format": FORMAT,
        "pieces": settings(rules, config.corpus.tokens),
        "corpus": config.corpus.parameters,
        **({} if rules == "as-written" else {"rules": rules}),
    }
    return prepared_folder(config.corpus.title, config.vocab_size, parameters)


def prepared_folder(name: str, vocab_size: int, parameters: Mapping[str, Any]) -> Path:
    """Return the folder of a corpus that is prepared with these parameters.

    Args:
        name: The corpus.
        vocab_size: Number of pieces.
        parameters: Plain JSON values, all that decides what is in the folder.
    """
    digest = checksum(parameters)[:16]
    return data_root() / "prepared" / f"{name}-{vocab_size}-{digest}"


@contextmanager
def _only_here(folder: Path, hear: Hear) -> Iterator[None]:
    """Be the only one to prepare; the system frees the lock however the process ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hear("waiting for another process that prepares the same", 0, 0)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(folder: Path, corpus: Corpus, config: Preparable, hear: Hear) -> None:
    prefix, suffix = f".{folder.name}.", ".partial"
    for remains in folder.parent.glob(f"{prefix}*{suffix}"):
        shutil.rmtree(remains, ignore_errors=True)
    with TemporaryDirectory(suffix, prefix, folder.parent, ignore_cleanup_errors=True) as made:
        partial = Path(made)
        manifest = _fill(partial, corpus, config, hear)
        (partial / MANIFEST).write_bytes(to_json(seal(manifest)))
        for path in partial.iterdir():
            sync(path)
        partial.chmod(0o755)
        sync(partial)
        try:
            partial.rename(folder)
        except OSError:
            # Where locks do not reach other machines, one of them may have been faster.
            if not folder.exists():
                raise
        sync(folder.parent)


def _fill(folder: Path, corpus: Corpus, config: Preparable, hear: Hear) -> dict[str, Any]:
    digest, rules, unit = hashlib.sha256(), config.effective_rules, config.corpus.tokens
    num_articles: dict[Split, int] = {}
    num_lines: dict[Split, int] = {}
    for split in SPLITS:
        num_articles[split], num_lines[split] = _clean(folder, split, corpus, rules, digest, hear)
    _verify(config.corpus, num_articles, digest.hexdigest())
    hear("training the pieces", 0, num_lines["train"])
    model = train_pieces(raw_lines(_text_file(folder, "train")), config.vocab_size, rules, unit)
    (folder / MODEL).write_bytes(model)
    pieces = Pieces(model)
    ends = {
        split: _encode(folder, split, pieces, rules, num_lines[split], hear) for split in SPLITS
    }
    for split in SPLITS:
        _text_file(folder, split).unlink()
    return {
        "format": FORMAT,
        "corpus": config.corpus.parameters,
        "sources": dict(corpus.sources()),
        "text_sha256": digest.hexdigest(),
        "vocab_size": pieces.vocab_size,
        "pieces": settings(rules, unit),
        "rules": rules,
        "num_articles": num_articles,
        "num_paragraphs": {split: len(ends[split]) for split in SPLITS},
        "num_ids": {split: int(ends[split][-1]) for split in SPLITS},
        "files": {path.name: sha256(path) for path in sorted(folder.iterdir())},
    }


def _text_file(folder: Path, split: Split) -> Path:
    return folder / f"{split}.txt"


def _clean(
    folder: Path, split: Split, corpus: Corpus, rules: Rules, digest: Any, hear: Hear
) -> tuple[int, int]:
    """Write a part's paragraphs to a file, one per line: the source is read only once.

    Returns:
        How many articles and paragraphs there are.
    """
    num_articles = done = 0
    with _text_file(folder, split).open("wb") as file:
        for line in read_lines(corpus.lines(split)):
            num_articles += line.level == 1
            if not line.is_kept(rules):
                continue
            content = line.text.encode() + b"\n"
            file.write(content)
            digest.update(content)
            done += 1
            if done % PARAGRAPHS_AT_ONCE == 0:
                hear(f"reading {split}", done, 0)
    hear(f"reading {split}", done, done)
    if not done:
        raise CorruptError(f"the {split} part of the corpus has no paragraph: download it again")
    return num_articles, done


def _verify(config: CorpusConfig, num_articles: dict[Split, int], digest: str) -> None:
    found = tuple(num_articles[split] for split in SPLITS)
    expected = config.expected_articles
    if expected is not None and found != expected:
        raise ConfigError(
            f"corpus {config.title}: expected {_counts(expected)} articles in "
            f"{', '.join(SPLITS)}, found {_counts(found)}: files are cut short, or this is another "
            "corpus; if it is meant, give it a name and num_articles of its own"
        )
    if config.expected_digest not in (None, digest):
        raise ConfigError(
            f"corpus {config.title}: the SHA-256 of its paragraphs should be "
            f"{config.expected_digest}, is {digest}: download the files again or correct the digest"
        )


def _counts(numbers: tuple[int, ...]) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def _encode(
    folder: Path, split: Split, pieces: Pieces, rules: Rules, total: int, hear: Hear
) -> Int64[np.ndarray, " paragraphs"]:
    """Write the ids of all paragraphs that have something to predict, and return their ends."""
    done, lengths = 0, [0]
    paragraphs = raw_lines(_text_file(folder, split))
    with (folder / IDS.format(split)).open("wb") as file:
        while block := list(islice(paragraphs, PARAGRAPHS_AT_ONCE)):
            for ids in pieces.encode(block):
                if _is_usable(ids, rules):
                    file.write(ids.astype(ids_type(pieces.vocab_size)).tobytes())
                    lengths.append(len(ids))
            done += len(block)
            hear(f"encoding {split}", done, total)
    offsets = np.cumsum(lengths, dtype="<i8")
    (folder / OFFSETS.format(split)).write_bytes(offsets.tobytes())
    if len(offsets) == 1:
        raise CorruptError(
            f"the {split} part of the corpus has nothing to predict: download it again"
        )
    return offsets[1:]


def _is_usable(ids: np.ndarray, rules: Rules) -> bool:
    """Whether a paragraph has a token that counts: `as-run` a known one after the first."""
    return bool(len(ids) if rules == "as-written" else (ids[1:] != UNKNOWN).any())


SHARE = 0.05
"""Share of the paragraphs that the validation part has, and the test part, unless said."""


def keep_text(file: Path, name: str, *, share: float = SHARE, unit: Unit = "pieces") -> TextConfig:
    """Split a text into three parts and keep them under a name.

    Args:
        file: UTF-8 text.
        name: Under which a spec finds it, `task.corpus=NAME`.
        share: Of the paragraphs, for the validation part before the end and for the test part at
            the end; each has one at least.
        unit: What a token is.

    Returns:
        The corpus, with the digest of its paragraphs.

    Raises:
        ConfigError: If there is no such file, the name is taken by another text or another split,
            or is a kind of corpus, or there are fewer than three paragraphs.
        CorruptError: If the file is not UTF-8 text.
        StoreError: If a file cannot be read or written.
    """
    if not 0 < share <= 0.25:
        raise ConfigError(f"--share is invalid: expected above 0, at most 0.25, got {share}")
    if not file.exists():
        raise ConfigError(f"{file.absolute()}: no such file: expected one of UTF-8 text")
    with reading(file, "convert it first"):
        paragraphs = split_paragraphs(file.read_text(encoding="utf-8-sig"))
    if len(paragraphs) < 3:
        raise ConfigError(f"{file}: expected at least three paragraphs, got {len(paragraphs)}")
    held = max(1, round(share * len(paragraphs)))
    ends = (len(paragraphs) - 2 * held, len(paragraphs) - held, len(paragraphs))
    content = {
        split: "".join(f"{line}\n" for line in paragraphs[start:end]).encode()
        for split, start, end in zip(SPLITS, (0, *ends), ends, strict=False)
    }
    digest = hashlib.sha256(b"".join(content.values())).hexdigest()
    if name in CORPORA.names():
        raise ConfigError(f"--name is invalid: {name!r} is a kind of corpus; choose another")
    sizes = (ends[0], held, held)
    try:
        config = TextConfig(name=name, digest=digest, paragraphs=sizes, unit=unit)
    except ConfigError as error:
        raise ConfigError(f"{error}: choose another --name") from None
    _keep(raw_folder(name), content, config.dump())
    return config


def _keep(folder: Path, content: Mapping[Split, bytes], about: Mapping[str, Any]) -> None:
    """Write all files or none; the same text may be kept again, with another unit too."""
    old = find_text(folder.parent.name)
    if old is not None and any(old.get(key) != about[key] for key in ("digest", "paragraphs")):
        raise ConfigError(
            f"{folder}: another text, or another --share of it, has this name: choose another "
            "--name, or delete the folder"
        )
    with storing(folder):
        make_directory(folder)
    for split, text in content.items():
        write_atomically(folder / f"{split}.txt", text)
    # The description comes last: without it nothing is there.
    write_atomically(folder / ABOUT, to_json(about))
