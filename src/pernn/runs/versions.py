"""Which code runs here: versions of packages, commit of a source checkout; loads no torch."""

import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe_versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    """Return the versions of packages, `None` for those that are absent."""
    return {name: _version(name) for name in packages}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_commit() -> str | None:
    """Name the commit of a source checkout, with a mark if it was changed."""
    # Installed below somebody else's checkout, this file is not one of theirs.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--match=")


def _git(*words: str) -> str | None:
    """Ask Git about the folder of this file; `None` if it has no answer."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
