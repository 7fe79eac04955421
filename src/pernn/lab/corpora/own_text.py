"""A text of one's own, split once by `pernn prepare FILE`."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, CorruptError
from pernn.lab.store import make_directory, storing, to_json, write_atomically

from .config import CORPORA, TextConfig, Unit
from .folders import ABOUT, find_text, raw_folder
from .text import SPLITS, Split, split_paragraphs

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
    with storing(file):
        try:
            paragraphs = split_paragraphs(file.read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            raise CorruptError(
                f"{file}: not UTF-8 text ({error.reason}): convert it first"
            ) from None
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
    config = TextConfig(name=name, digest=digest, paragraphs=sizes, unit=unit)
    _put(raw_folder(name), content, config.dump())
    return config


def _put(folder: Path, content: Mapping[Split, bytes], about: Mapping[str, Any]) -> None:
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
