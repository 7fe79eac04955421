"""Parts of other packages: which source a run began with, and whether it has changed since."""

import hashlib
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pernn.config import Part
from pernn.errors import StoreError
from pernn.store import RunDirectory

from .spec import RunSpec

UNKNOWN = "unknown"
"""Digest of a source that is in no file, such as a notebook's."""


def describe_parts(spec: RunSpec) -> dict[str, str]:
    """Return the SHA-256 of other packages' parts' sources, by path in the spec."""
    first = {} if spec.pretraining is None else {"pretraining.task": spec.pretraining.task}
    parts = {"task": spec.task, "core": spec.core, "encoding": spec.encoding, **first}
    return {
        name: source_digest(type(part))
        for name, part in parts.items()
        if part.__class__.__module__.partition(".")[0] != "pernn"
    }


@cache  # The source as it was when the class was first used, not as somebody edits it meanwhile.
def source_digest(config: type[Part]) -> str:
    """Return the SHA-256 of a config's module; of all modules of its folder in a package."""
    module = sys.modules.get(config.__module__)
    file = Path(getattr(module, "__file__", None) or "")
    files = sorted(file.parent.glob("*.py")) if getattr(module, "__package__", "") else [file]
    digest = hashlib.sha256()
    try:
        for path in files:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    except OSError:
        return UNKNOWN
    return digest.hexdigest()


def changed_parts(runs: Mapping[str, RunSpec], root: Path) -> list[str]:
    """Return a line per part whose source differs from what these runs began with."""
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run, spec in runs.items():
        now = describe_parts(spec)
        if not now:
            continue
        started: Mapping[str, Any] = {}
        with suppress(StoreError):  # Whoever needs the file complains.
            started = RunDirectory(root, run).read_environment() or {}
        then = started.get("parts")
        for name, digest in now.items():
            if isinstance(then, dict) and then.get(name) not in (None, digest):
                part: Any = spec
                for key in name.split("."):
                    part = getattr(part, key)
                changed[name, part.kind].append(run)
    return [
        f"{name} {kind!r} was changed since run {found[0]}"
        f"{f' and {len(found) - 1} more' if len(found) > 1 else ''} began: what is there is the "
        f"old code's; delete {RunDirectory(root, found[0]).path} to run it anew, or give the part "
        "another kind or parameter"
        for (name, kind), found in changed.items()
    ]
