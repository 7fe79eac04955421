"""Checkpoints: safetensors and JSON with checksums, never a pickle."""

import hashlib
import re
import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError
from safetensors.numpy import load, save

from pernn.errors import CorruptError, StoreError

from .files import (
    MAX_BYTES,
    draft_of,
    make_directory,
    parse_lines,
    physical_memory,
    read_json,
    read_whole,
    refuse_links,
    storing,
    sync,
    to_json,
    write_atomically,
)

NUM_LATEST = 2
"""Newest checkpoints that are always kept: if one is damaged there is another."""

NAME = re.compile(r"update-(\d{9}|[1-9]\d{9,17})", re.ASCII)
REMAINS, DAMAGED = ".*update-*.partial", "damaged-update-*"
TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint."""

    update: int
    arrays: Mapping[str, Shaped[np.ndarray, "..."]]  # tensors by flat name
    state: Mapping[str, Any]  # the rest, as plain JSON values


class CheckpointFolder:
    """The checkpoints of one run, each whole or absent.

    Args:
        path: The folder; made on the first save.
        writing: Is entered for every change; may refuse it.
    """

    def __init__(
        self, path: Path, writing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self.path, self._writing = path, writing

    def updates(self) -> list[int]:
        """List the updates with a checkpoint, ascending."""
        if not self.path.is_dir():
            return []
        with storing(self.path):
            names = [entry.name for entry in self.path.iterdir() if entry.is_dir()]
        found = [NAME.fullmatch(name) for name in names]
        return sorted(int(one[1]) for one in found if one)

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, unless there is one of this update."""
        final = self._folder(checkpoint.update)
        if final.exists():
            return
        parts = {
            TENSORS: save({n: np.asarray(a, order="C") for n, a in checkpoint.arrays.items()}),
            STATE: to_json({"update": checkpoint.update, **checkpoint.state}),
        }
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
        temporary = draft_of(final)
        with self._writing(), storing(final):
            try:
                make_directory(self.path)
                temporary.mkdir()
                for name, content in {**parts, MANIFEST: to_json({"sha256": digests})}.items():
                    write_atomically(temporary / name, content)
                # It took long, and what another process begins meanwhile is not this one's to fill.
                with self._writing():
                    temporary.rename(final)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            sync(self.path)

    def load(self, update: int) -> Checkpoint:
        """Read a checkpoint and check it."""
        folder = self._folder(update)
        refuse_links(self.path, folder)
        for name in (MANIFEST, TENSORS, STATE):
            if not (folder / name).exists():
                raise CorruptError(f"{folder / name}: is missing")
        digests = read_json(folder / MANIFEST).get("sha256")
        contents = {}
        for name, limit in ((TENSORS, physical_memory()), (STATE, MAX_BYTES)):
            contents[name] = read_whole(folder / name, limit)
            digest = hashlib.sha256(contents[name]).hexdigest()
            if not isinstance(digests, dict) or digests.get(name) != digest:
                raise CorruptError(f"{folder / name}: its SHA-256 is not the manifest's")
        state = read_json(folder / STATE, MAX_BYTES)
        if state.pop("update", None) != update:
            raise CorruptError(f"{folder}: holds another update")
        try:
            return Checkpoint(update, load(contents[TENSORS]), state)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise CorruptError(f"{folder / TENSORS}: not safetensors: {error}") from None

    def load_latest(self) -> tuple[Checkpoint | None, list[str]]:
        """Read the newest sound checkpoint, rename damaged ones and complain."""
        complaints: list[str] = []
        for update in reversed(self.updates()):
            try:
                found = self.load(update)
                # A log that was damaged before it was kept has a right digest, too.
                metrics = str(found.state.get("metrics", "")).encode()
                list(parse_lines(self._folder(update) / STATE, metrics))
            except CorruptError as error:
                complaints.append(str(error))
                self.set_aside(update)
            else:
                return found, complaints
        return None, complaints

    def set_aside(self, update: int) -> None:
        """Rename a damaged checkpoint so that it is not read again."""
        folder = self._folder(update)
        target = folder.with_name(f"damaged-{folder.name}")
        with self._writing(), storing(folder):
            shutil.rmtree(target, ignore_errors=True)
            folder.rename(target)

    def prune(self, keep_interval: int | None) -> None:
        """Delete all but the newest two and those that are kept.

        What cannot be deleted now costs space only: the next call tries again.
        """
        old = [u for u in self.updates()[:-NUM_LATEST] if not keep_interval or u % keep_interval]
        with self._writing(), suppress(StoreError):
            self.delete([*map(self._folder, old), *sorted(self.path.glob(REMAINS))])

    def leftovers(self, kept: Container[int]) -> list[Path]:
        """List the checkpoints that a finished run can do without."""
        if not self.path.is_dir():
            return []
        refuse_links(self.path)
        unneeded = [self._folder(update) for update in self.updates() if update not in kept]
        remains = [path for form in (REMAINS, DAMAGED) for path in sorted(self.path.glob(form))]
        return [*unneeded, *remains]

    def delete(self, folders: Sequence[Path]) -> None:
        """Delete some of its folders, never half a checkpoint.

        Each is first renamed to what no reader takes for a checkpoint.
        """
        for folder in folders:
            with storing(folder):
                hidden = folder.name.startswith(".")
                shutil.rmtree(folder if hidden else folder.rename(draft_of(folder)))

    def _folder(self, update: int) -> Path:
        return self.path / f"update-{update:09d}"
