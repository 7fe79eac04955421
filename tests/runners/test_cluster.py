"""What machines of a Ray cluster are checked for, and what they send back of a trial."""

from pathlib import Path

import pytest

from pernn.errors import MachineError
from pernn.lab.runners.ray import describe_code
from pernn.lab.runners.runner import make_request, run_request
from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory
from runners.test_runners import SPEC, Ear

pytest.importorskip("ray", reason="ray is not installed: pip install -e '.[ray]'")

from pernn.lab.runners import ray_child
from pernn.lab.runners.ray_child import require_same, task

WHERE = {"device": "cpu", "threads": 1, "expired": {}}


def test_a_machine_sends_back_what_was_mended_and_how_the_trial_ended(tmp_path: Path) -> None:
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update != 12)
    run = RunDirectory(tmp_path, SPEC.fingerprint())
    (run.path / "checkpoints" / "update-000000012" / "manifest.json").write_text("{}")
    (tmp_path / "mark").touch()
    request = make_request(SPEC, tmp_path, **WHERE)
    mended, end = task(str(tmp_path / "mark"), describe_code(), request)
    assert mended["message"].startswith("damaged checkpoint")
    assert (end["state"], end["update"]) == ("finished", 30)
    request["spec"]["core"]["kind"] = "one of another package"
    (end,) = task(str(tmp_path / "mark"), describe_code(), request)
    assert (end["state"], end["error"][-11:]) == ("failed", "ConfigError")
    assert (tmp_path / "workers.log").exists()


def test_a_trial_gets_its_share_of_a_gpu_or_says_that_there_is_none(tmp_path: Path) -> None:
    request = make_request(SPEC, tmp_path, gpu_share=0.25, **WHERE | {"device": "cuda:99"})
    end = run_request(request, Ear(), lambda: True)
    assert (end.state, end.error) == ("failed", "MachineError")
    assert "no device 'cuda:99' here" in end.message


def test_a_machine_that_shares_nothing_or_has_other_code_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_child, "WAIT_SECONDS", 0)
    require_same(tmp_path, describe_code())
    with pytest.raises(MachineError, match=r"does not see .* all machines of the cluster share"):
        require_same(tmp_path / "elsewhere", describe_code())
    with pytest.raises(MachineError, match=r"has pernn .* where the driver has 9\.9"):
        require_same(tmp_path, {**describe_code(), "pernn": "9.9"})
