"""SentencePiece: text ↔ ids, by the library's defaults or without losing a character."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from pernn.errors import ConfigError, MachineError, install_command

from .config import Unit
from .text import Rules

NUM_THREADS = 8
UNKNOWN = 0
"""Id of the piece that stands for characters that have none."""
SETTINGS: dict[Rules, dict[str, Any]] = {
    "as-written": {
        "model_type": "unigram",
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "byte_fallback": True,
        # Fixed on every machine: sums over threads decide the last bits of the pieces' scores.
        "num_threads": NUM_THREADS,
        "input_sentence_size": 0,
        "shuffle_input_sentence": False,
        # The default leaves out paragraphs of more than 4,192 bytes without a word.
        "max_sentence_length": 2**24,
        "unk_id": UNKNOWN,
        "bos_id": -1,
        "eos_id": -1,
        "pad_id": -1,
    },
    # The library's defaults, of which these decide bits or ids.
    "as-run": {"model_type": "unigram", "num_threads": 16, "unk_id": UNKNOWN},
}
"""Settings of the training of pieces."""
CHARACTERS = {"model_type": "char", "character_coverage": 1.0, "hard_vocab_limit": False}
"""Settings beside these, if a token is a character."""
MARK = "▁"
"""Stands for a space inside the library, so a true one is written as its three bytes."""


def library() -> Any:
    """Import SentencePiece.

    Raises:
        MachineError: If it is missing.
    """
    try:
        import sentencepiece
    except ImportError:
        raise MachineError(
            f"preparing and decoding text needs sentencepiece: {install_command('language')}"
        ) from None
    return sentencepiece


def settings(rules: Rules, unit: Unit) -> dict[str, Any]:
    """Return what the training is called with, beside the number of pieces."""
    return SETTINGS[rules] | (CHARACTERS if unit == "characters" else {})


def train_pieces(
    paragraphs: Iterable[str], vocab_size: int, rules: Rules = "as-written", unit: Unit = "pieces"
) -> bytes:
    """Train a unigram model, or list the characters.

    Args:
        paragraphs: The text.
        vocab_size: Number of pieces; `as-written` the 256 bytes and one unused piece included,
            `as-run` the unknown piece and two unused ones.
        rules: By which settings.
        unit: What a piece is.

    Returns:
        The model as SentencePiece writes it to a file.

    Raises:
        ConfigError: If the text has too many characters, or too few words, for that many pieces.
        MachineError: If SentencePiece is missing.
    """
    written = io.BytesIO()
    try:
        library().SentencePieceTrainer.train(
            sentence_iterator=iter(paragraphs),
            model_writer=written,
            vocab_size=vocab_size,
            minloglevel=2,
            **settings(rules, unit),
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2]
        raise ConfigError(f"vocab_size {vocab_size} does not fit the text: {reason}") from None
    return written.getvalue()


class Pieces:
    """A trained model.

    Args:
        model: What `train_pieces` gave.

    Raises:
        MachineError: If SentencePiece is missing.
    """

    def __init__(self, model: bytes) -> None:
        self._processor = library().SentencePieceProcessor(model_proto=model)
        self.vocab_size = int(self._processor.vocab_size())
        words = [f"<0x{byte:02X}>" for byte in MARK.encode()]
        self._mark = [int(self._processor.piece_to_id(word)) for word in words]
        self._is_lossless = UNKNOWN not in self._mark

    def encode(self, paragraphs: Sequence[str]) -> list[Int32[np.ndarray, " pieces"]]:
        """Return the ids of each text."""
        found = self._processor.encode(list(paragraphs), out_type="numpy", num_threads=NUM_THREADS)
        return [
            self._with_marks(text)
            if self._is_lossless and MARK in text
            else np.asarray(ids, dtype=np.int32)
            for text, ids in zip(paragraphs, found, strict=True)
        ]

    def _with_marks(self, text: str) -> Int32[np.ndarray, " pieces"]:
        first, *others = (self._processor.encode(part) for part in text.split(MARK))
        ids = [*first, *(index for part in others for index in (*self._mark, *part))]
        return np.asarray(ids, dtype=np.int32)

    def decode(self, ids: Int64[np.ndarray, " pieces"]) -> str:
        """Return the text of ids."""
        return str(self._processor.decode(ids.tolist()))
