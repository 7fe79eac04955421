"""A run on files: it says on which, and does not go on with others."""

from pathlib import Path

import pytest

from pernn.errors import StoreError
from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory
from runs.test_tasks import tiny


def test_a_run_is_not_resumed_on_another_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny("language_modelling")
    execute(spec, tmp_path, device="cpu", on_update=lambda n: n != 3)
    environment = RunDirectory(tmp_path, spec.fingerprint()).read_environment()
    assert environment is not None
    assert len(environment["data_sha256"]) == 64
    with monkeypatch.context() as patch:
        patch.setattr("pernn.lab.corpora.language_modelling.ParagraphStream.digest", "another")
        with pytest.raises(StoreError, match=r"began on data with SHA-256 .* now it is another"):
            execute(spec, tmp_path, device="cpu")
    assert execute(spec, tmp_path, device="cpu").state == "finished"


def test_drawn_data_have_no_digest(tmp_path: Path) -> None:
    spec = tiny("sorting")
    execute(spec, tmp_path, device="cpu")
    assert "data_sha256" not in RunDirectory(tmp_path, spec.fingerprint()).read_environment()
