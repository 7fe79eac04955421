"""Preparation: own texts kept, and text → pieces → memory-mapped ids."""

import fcntl
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt16, UInt32

from pernn.errors import ConfigError, CorruptError, MachineError
from pernn.lab.store import (
    check_format,
    checksum,
    make_directory,
    read_json_if_any,
    storing,
    to_json,
    write_atomically,
)

from .config import CORPORA, CorpusConfig, PreparedConfig, TextConfig, Unit
from .pieces import UNKNOWN, Pieces, library, settings, train_pieces
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
            path = folder / name
            if not path.exists() or sha256(path) != self.manifest["files"].get(name):
                raise self._damaged(name)
        self.vocab_size: int = self.manifest["vocab_size"]
        kind = ids_type(self.vocab_size)
        self._ids: dict[Split, Ids] = {
            split: np.memmap(folder / IDS.format(split), kind, "r") for split in SPLITS
        }
        self._offsets: dict[Split, Int64[np.ndarray, " edges"]] = {
            split: np.memmap(folder / OFFSETS.format(split), "<i8", "r") for split in SPLITS
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the pieces and of all ids."""
        return checksum(self.manifest["files"])

    def num_paragraphs(self, split: Split) -> int:
        """Count the paragraphs of a part."""
        return len(self._offsets[split]) - 1

    def lengths(self, split: Split) -> Int64[np.ndarray, " paragraphs"]:
        """Return the number of pieces of each paragraph."""
        return np.diff(self._offsets[split])

    def ids(self, split: Split, index: int, max_length: int | None = None) -> Ids:
        """Return a paragraph's ids, at most `max_length`, read-only."""
        start, stop = self._offsets[split][index : index + 2]
        return self._ids[split][start:stop][:max_length]

    def counts(self, split: Split) -> Int64[np.ndarray, " pieces"]:
        """Count how often each piece occurs in a part."""
        return np.bincount(self._ids[split], minlength=self.vocab_size)

    @cached_property
    def pieces(self) -> Pieces:
        """The model that the text was encoded with."""
        return Pieces((self.folder / MODEL).read_bytes())

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            manifest = read_json_if_any(path) or {}
            check_format(path, manifest, FORMAT)
        except CorruptError:
            manifest = {}
        if manifest.pop("manifest_sha256", None) != checksum(manifest):
            raise self._damaged(MANIFEST)
        return manifest

    def _damaged(self, name: str) -> CorruptError:
        return CorruptError(
            f"{self.folder / name}: missing, or not what was written: delete the folder "
            f"{self.folder} to have the corpus prepared again"
        )


Hear = Callable[[str, int, int], None]
"""Is told what is being done, how many paragraphs are done, and of how many; 0 if unknown."""

PARAGRAPHS_AT_ONCE = 4096


def prepare(config: PreparedConfig, hear: Hear = lambda stage, done, total: None) -> EncodedCorpus:
    """Open a task's corpus, prepared now if it never was.

    If another process is preparing it, this one waits and then takes what the other has made.

    Args:
        config: The task; the number of its pieces and its corpus matter.
        hear: Told of the progress.

    Raises:
        MachineError: If the raw text or an optional package is missing.
        ConfigError: If the text is another than the config says, or than was prepared.
        CorruptError: If the raw text cannot be read, or what was prepared has changed on disk.
        VersionError: If a newer pernn prepared it.
        StoreError: If a file cannot be read or written.
    """
    folder = folder_of(config)
    check_source(config)
    if not folder.exists():
        with storing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with folder.with_name(f".{folder.name}.lock").open("w") as lock:
                # The system frees it however the process ends.
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not folder.exists():
                    _make(folder, config, hear)
    corpus = EncodedCorpus(folder)
    # The raw text may be gone by now.
    with suppress(MachineError):
        if config.corpus.build().sources() != corpus.manifest["sources"]:
            raise ConfigError(
                f"{folder} was prepared from other files than are there now: bring them back, or "
                "delete that folder to prepare the new text"
            )
    _verify(config.corpus, corpus.manifest["num_articles"], corpus.manifest["text_sha256"])
    return corpus


def check_source(config: PreparedConfig) -> None:
    """Refuse a task whose corpus is not prepared, and cannot be.

    Raises:
        MachineError: If the raw text or an optional package is missing.
    """
    if not folder_of(config).exists():
        library()
        config.corpus.build().sources()


def folder_of(config: PreparedConfig) -> Path:
    """Return the folder of a task's corpus, prepared or not."""
    rules = config.effective_rules
    parameters = {
        "format": FORMAT,
        "pieces": settings(rules, config.corpus.tokens),
        "corpus": config.corpus.parameters,
        **({} if rules == "as-written" else {"rules": rules}),
    }
    name = f"{config.corpus.title}-{config.vocab_size}-{checksum(parameters)[:16]}"
    return data_root() / "prepared" / name


def _make(folder: Path, config: PreparedConfig, hear: Hear) -> None:
    with TemporaryDirectory(".partial", f".{folder.name}.", folder.parent) as made:
        partial = Path(made)
        manifest = _fill(partial, config, hear)
        (partial / MANIFEST).write_bytes(to_json(seal(manifest)))
        partial.chmod(0o755)
        # Where locks do not reach other machines, one of them may have been faster.
        if not folder.exists():
            partial.rename(folder)


def _fill(folder: Path, config: PreparedConfig, hear: Hear) -> dict[str, Any]:
    corpus, rules, unit = config.corpus.build(), config.effective_rules, config.corpus.tokens
    digest = hashlib.sha256()
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
        raise CorruptError(f"the {split} part of the corpus has no paragraph: get the text again")
    return num_articles, done


def _verify(config: CorpusConfig, num_articles: dict[Split, int], digest: str) -> None:
    articles = tuple(num_articles[split] for split in SPLITS)
    for key, found in {"num_articles": articles, "digest": digest}.items():
        expected = getattr(config, key, None)
        if expected not in (None, found):
            raise ConfigError(
                f"corpus {config.title}: expected {key} {expected}, found {found}: get the files "
                "again, or say what they are by another name and its own values"
            )


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
    if len(lengths) == 1:
        raise ConfigError(
            f"no paragraph of the {split} part has a token to predict: take a longer text, or "
            "another --share of it"
        )
    offsets = np.cumsum(lengths, dtype="<i8")
    (folder / OFFSETS.format(split)).write_bytes(offsets.tobytes())
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
    with reading(file):
        paragraphs = split_paragraphs(file.read_text(encoding="utf-8-sig"))
    if len(paragraphs) < 3:
        raise ConfigError(f"{file}: expected at least three paragraphs, got {len(paragraphs)}")
    held = max(1, round(share * len(paragraphs)))
    sizes, lines = (len(paragraphs) - 2 * held, held, held), iter(paragraphs)
    content = {
        split: "".join(f"{line}\n" for line in islice(lines, size)).encode()
        for split, size in zip(SPLITS, sizes, strict=True)
    }
    digest = hashlib.sha256(b"".join(content.values())).hexdigest()
    if name in CORPORA.names():
        raise ConfigError(f"--name is invalid: {name!r} is a kind of corpus; choose another")
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
