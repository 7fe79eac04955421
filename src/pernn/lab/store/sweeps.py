"""Sweeps: which runs belong together, under a name, with their report."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from pernn.errors import ConfigError, CorruptError
from pernn.lab.config import parse_assignment

from .files import (
    FORMAT,
    MAX_RESULT_BYTES,
    check_format,
    make_directory,
    read_json,
    refuse_links,
    sealed,
    storing,
    to_json,
    write_atomically,
)
from .run_directory import FINGERPRINT

MANIFEST, PAUSE = "sweep.json", "pause"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}")


@dataclass(frozen=True)
class Sweep:
    """The runs of one experiment at one scale.

    Attributes:
        name: Folder name, `vocabulary_size-demo`, with a suffix if values were overridden.
        experiment: The experiment's name.
        scale: Its scale.
        overrides: Dotted path → value that replaced the experiment's own; a list made a grid,
            `+path` was added to it.
        runs: Fingerprints of all trials, finished or not, in the order of the grid.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=rf"^{NAME.pattern}$")]
    experiment: str
    scale: str
    overrides: Mapping[str, Any]
    runs: Sequence[Annotated[str, Field(pattern=rf"^{FINGERPRINT.pattern}$")]]

    @property
    def is_restricted(self) -> bool:
        """True if it has settings of its own beside its seeds."""
        return bool(self.overrides.keys() - {"seed"})

    @property
    def changes(self) -> str:
        """Its overrides as one line, `core.kind=gru, seed=[111, 222]`."""
        return ", ".join(f"{path}={in_words(value)}" for path, value in self.overrides.items())


def in_words(value: Any) -> str:
    """Return a value as it stands on a command line."""
    # A text that reads as something else, such as a number, is put in quotes.
    is_plain = isinstance(value, str) and parse_assignment(f"value={value}")[1] == value
    return value if is_plain else json.dumps(value)


_SWEEP = TypeAdapter(Sweep)


def as_sweep(values: Mapping[str, Any]) -> Sweep:
    """Return a sweep of plain values."""
    return _SWEEP.validate_json(to_json(values), strict=True)


def sweep_directory(root: Path, name: str) -> Path:
    """Return a sweep's folder."""
    if not NAME.fullmatch(name):
        raise ConfigError(f"not a sweep's name, of letters, digits, _, - and .: {name[:60]!r}")
    directory = root / "sweeps" / name
    refuse_links(directory.parent, directory)
    return directory


def save_sweep(root: Path, sweep: Sweep) -> Path:
    """Write a sweep's list of runs and give its folder."""
    directory = sweep_directory(root, sweep.name)
    with storing(directory):
        make_directory(directory)
    write_atomically(directory / MANIFEST, to_json(sealed({"format": FORMAT, **asdict(sweep)})))
    return directory


def load_sweep(root: Path, name: str) -> Sweep:
    """Read a sweep's list of runs.

    Raises:
        ConfigError: If there is no such sweep.
        CorruptError: If its file is not one.
    """
    path = sweep_directory(root, name) / MANIFEST
    if not path.exists():
        known = ", ".join(list_sweeps(root)) or "none yet: start one with `pernn run`"
        raise ConfigError(f"no sweep {name!r} in {root.absolute()} (there: {known})")
    try:
        values = read_json(path, MAX_RESULT_BYTES)
    except CorruptError as error:
        raise CorruptError(f"{error}; run the experiment again, which writes it anew") from None
    check_format(path, values)
    del values["format"]
    try:
        sweep = as_sweep(values)
    except ValueError:
        raise CorruptError(f"{path}: not a list of runs: run the experiment again") from None
    if sweep.name != name:
        raise CorruptError(f"{path}: the list of another sweep, {sweep.name!r}")
    return sweep


def list_sweeps(root: Path) -> list[str]:
    """List the sweeps of a results directory."""
    folder = root / "sweeps"
    refuse_links(folder)
    names = (path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
    return sorted(name for name in names if NAME.fullmatch(name))


def request_pause(root: Path, name: str) -> None:
    """Ask every driver of a sweep to checkpoint and leave."""
    path = sweep_directory(root, name) / PAUSE
    with storing(path):
        path.touch()


def withdraw_pause(root: Path, name: str) -> None:
    """Let drivers of a sweep work again."""
    path = sweep_directory(root, name) / PAUSE
    with storing(path):
        path.unlink(missing_ok=True)


def is_pause_requested(root: Path, name: str) -> bool:
    """Return whether somebody asked for a pause."""
    return (sweep_directory(root, name) / PAUSE).exists()
