"""Checkpoints: whole or absent, checked, never unpickled."""

import errno
import hashlib
import json
import os
import pickle
from contextlib import suppress

import numpy as np
import pytest

from pernn.errors import CorruptError, StoreError
from pernn.lab.store import Checkpoint, CheckpointFolder
from pernn.lab.store.checkpoints import MANIFEST, STATE, TENSORS
from store.finished import Trap

ARRAYS = {
    "model.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "step": np.array(3.0, dtype=np.float32),
    "sums": np.zeros(2),
}


@pytest.fixture
def folder(tmp_path):
    folder = CheckpointFolder(tmp_path / "checkpoints")
    for update in (1, 2):
        folder.save(Checkpoint(update, ARRAYS, {"metrics": 10 * update}))
    return folder


def newest(folder):
    return folder.path / "update-000000002"


def test_load_gives_what_was_saved(folder):
    found = folder.load(2)
    assert found.state == {"metrics": 20}
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert np.array_equal(found.arrays[name], array)


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_truncated_anywhere_falls_back_to_the_previous(folder, name):
    path = newest(folder) / name
    whole = path.read_bytes()
    for size in sorted({0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 2}):
        if size >= len(whole):
            continue
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptError):
            folder.load(2)
    found, complaints = folder.load_latest()
    assert found.update == 1
    assert len(complaints) == 1
    assert "\n" not in complaints[0]
    # Set aside under another name: nothing is lost, and it is not read again.
    assert folder.updates() == [1]
    assert (folder.path / "damaged-update-000000002" / name).exists()


@pytest.mark.parametrize("name", [TENSORS, STATE])
def test_every_flipped_bit_is_noticed(folder, name):
    path = newest(folder) / name
    whole = path.read_bytes()
    for position in range(0, len(whole), 5):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(bytes(flipped))
        with pytest.raises(CorruptError):
            folder.load(2)


def test_missing_files_renamed_folders_and_pickles_are_noticed(folder, tmp_path):
    content = pickle.dumps(Trap(tmp_path / "exploded"))
    (newest(folder) / TENSORS).write_bytes(content)
    manifest = json.loads((newest(folder) / MANIFEST).read_text())
    manifest["sha256"][TENSORS] = hashlib.sha256(content).hexdigest()
    (newest(folder) / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CorruptError, match="not safetensors"):
        folder.load(2)
    assert not (tmp_path / "exploded").exists()
    newest(folder).rename(folder.path / "update-000000003")
    with pytest.raises(CorruptError, match="another update"):
        folder.load(3)
    (folder.path / "update-000000001" / TENSORS).unlink()
    assert folder.load_latest()[0] is None


@pytest.mark.parametrize(("interval", "kept"), [(None, [9, 10]), (4, [4, 8, 9, 10])])
def test_the_last_two_are_kept_and_those_asked_for(tmp_path, interval, kept):
    folder = CheckpointFolder(tmp_path)
    for update in range(1, 11):
        folder.save(Checkpoint(update, ARRAYS, {}))
        folder.prune(interval)
    assert folder.updates() == kept


class Killed(BaseException):
    """What a killed process does not get to do."""


@pytest.mark.parametrize("way", ["prune", "delete"])
@pytest.mark.parametrize("end", [Killed, OSError(errno.EIO, "Input/output error")])
def test_a_deletion_that_breaks_off_leaves_no_half_of_a_checkpoint(tmp_path, way, end, monkeypatch):
    folder = CheckpointFolder(tmp_path)
    for update in (1, 2, 3):
        folder.save(Checkpoint(update, ARRAYS, {}))
    unlink, calls = os.unlink, []

    def break_off(*words, **more):
        calls.append(words)
        if len(calls) == 2:
            raise end
        unlink(*words, **more)

    monkeypatch.setattr(os, "unlink", break_off)
    with suppress(Killed, StoreError):
        folder.prune(None) if way == "prune" else folder.delete([tmp_path / "update-000000001"])
    monkeypatch.undo()
    assert len(calls) >= 2
    assert [folder.load(update).update for update in folder.updates()] == [2, 3]
    folder.prune(None)
    assert {path.name for path in tmp_path.iterdir()} == {"update-000000002", "update-000000003"}
