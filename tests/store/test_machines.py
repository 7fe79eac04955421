"""On which machines a sweep ran, from records that anybody may have changed."""

import random
from pathlib import Path

import pytest

from pernn.lab.store.files import MAX_SMALL_BYTES
from pernn.lab.trials import describe, gather
from store.finished import finish, spec


def test_a_record_of_a_machine_is_read_within_a_bound(tmp_path: Path) -> None:
    run = finish(tmp_path, spec(1), random.Random(1)).fingerprint
    (tmp_path / "runs" / run / "environment.json").write_bytes(b" " * (MAX_SMALL_BYTES + 1))
    said: list[str] = []
    assert describe(gather(tmp_path, [run], on_warning=said.append)) == []
    assert len(said) == 1
    assert "bytes, nothing that pernn wrote" in said[0]


def test_a_run_without_the_record_is_left_out(tmp_path: Path) -> None:
    run = finish(tmp_path, spec(1), random.Random(1))
    (run.path / "environment.json").unlink(missing_ok=True)
    assert describe(gather(tmp_path, [run.fingerprint], on_warning=pytest.fail)) == []
