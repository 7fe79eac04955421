"""A file in the user's folder hides no module from workers, and its parts are found there."""

from pathlib import Path

import pytest

from pernn.lab.runners import LocalRunner
from runners.test_runners import SPEC, Ear

PART = """
from typing import Literal

from pernn.lab.encodings import NoneConfig


class OwnConfig(NoneConfig):
    kind: Literal["own"] = "own"
"""


def test_a_worker_takes_modules_of_the_users_folder_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "part_beside_random.py").write_text(PART)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = SPEC.override({"encoding": "part_beside_random:OwnConfig"})
    ear = Ear()
    LocalRunner(jobs=1, device="cpu").run([spec], Path("results"), ear)
    assert ear.ends() == {spec.fingerprint(): "finished"}, ear
