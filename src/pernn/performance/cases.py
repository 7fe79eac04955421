"""What is timed: a trial from a file, or reverse ordering of some shapes by some cores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError
from pernn.runs import RunSpec

from .comparison import SHAPES, make_spec

Case = tuple[str, RunSpec]
"""Name and spec."""


def find_cases(
    spec: Path | None, shapes: Sequence[str] | None, cores: str, changes: Mapping[str, Any]
) -> list[Case]:
    """Return what is to be timed.

    Args:
        spec: TOML or JSON file of one trial; if given, shapes and cores do not count.
        shapes: Hidden size, batch size, length and vocabulary size each, `512,64,64,256`;
            `SHAPES` if absent.
        cores: Their kinds, separated by commas.
        changes: Dotted path → value that replaces the case's own.

    Raises:
        ConfigError: If a shape, a file or a change is invalid.
    """
    if spec is not None:
        return [(spec.name, RunSpec.read(spec).override(changes))]
    sizes = [_read_shape(text) for text in shapes] if shapes else list(SHAPES)
    return [
        (
            "{} H {} B {} L {} K {:,}".format(core, *shape),
            make_spec(core, shape).override(changes),
        )
        for shape in sizes
        for core in cores.split(",")
    ]


def _read_shape(text: str) -> tuple[int, int, int, int]:
    try:
        hidden, batch, length, vocab = map(int, text.split(","))
    except ValueError:
        raise ConfigError(
            f"--shape must be four whole numbers H,B,L,K, such as 512,64,64,256; got {text!r}"
        ) from None
    return hidden, batch, length, vocab
