"""Registered plans, written down before they were run."""

import os
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, CorruptError
from pernn.lab.config import Config

from .files import FORMAT, MAX_RESULT_BYTES, check_format, read_json, sealed, to_json
from .published import SHIPPED

VARIABLE_OF_PLANS, FOLDERS = "PERNN_PLANS", ("plans", "docs/evidence/plans")
ENDING = ".lock.json"


class RegisteredClaim(Config):
    """A claim as it was registered.

    Attributes:
        digest: Of its statement, its predicate and its choice.
        statement: Its words.
        measure: The column that decides it.
        primary: Whether it is in the family of primary claims.
        seen: Smallest effect seen with 80 % power, in standard deviations of the values per seed.
    """

    digest: str
    statement: str
    measure: str
    primary: bool
    seen: float | None


class RegisteredSweep(Config):
    """A sweep as registered: fingerprints of trials, rule and claims."""

    name: str
    experiment: str
    scale: str
    overrides: dict[str, Any]
    rule: str
    runs: tuple[str, ...]
    claims: dict[str, RegisteredClaim]


class Registration(Config):
    """The content of a lock file.

    Attributes:
        title: The plan's.
        date: When it was registered, in UTC, as trials have it in `environment.json`.
        version: Version of pernn.
        commit: That of a source checkout.
        pilots: Seeds that were looked at before.
        sweeps: What is to be run.
        expectations: In the form of docs/evidence/expectations.json.
    """

    title: str
    date: str
    version: str | None
    commit: str | None
    pilots: tuple[int, ...]
    sweeps: tuple[RegisteredSweep, ...]
    expectations: tuple[dict[str, Any], ...]

    def to_json(self) -> bytes:
        """Return the file's content, whose checksum notices a change."""
        return to_json(sealed({"format": FORMAT, **self.dump()}))


def plan_folders() -> list[Path]:
    """List where plans are looked for.

    `PERNN_PLANS`; or what a wheel brought with it, then `plans` and `docs/evidence/plans` here.
    """
    named, shipped = os.environ.get(VARIABLE_OF_PLANS), SHIPPED / "plans"
    return [Path(named)] if named else [*[shipped] * shipped.is_dir(), *map(Path, FOLDERS)]


def read_registrations() -> dict[str, Registration]:
    """Read all registered plans, by name.

    Raises:
        CorruptError: If one was changed since it was registered.
        VersionError: If a newer pernn wrote it.
    """
    paths = [path for folder in plan_folders() for path in sorted(folder.glob(f"*{ENDING}"))]
    return {path.name.removesuffix(ENDING): _read(path) for path in paths}


def _read(path: Path) -> Registration:
    values = read_json(path, MAX_RESULT_BYTES)
    check_format(path, values)
    del values["format"]
    try:
        return Registration.load(values)
    except ConfigError as error:
        raise CorruptError(f"{path}: not a registered plan: {error}") from None
