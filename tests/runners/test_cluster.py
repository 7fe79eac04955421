"""What machines of a cluster are checked for, and what a driver reads in the files of trials."""

from pathlib import Path

import pytest

from pernn.errors import ConfigError, MachineError
from pernn.runners import TrialEvent, cluster
from pernn.runners.cluster import (
    DriverFolder,
    JournalWatch,
    check_machine,
    device_of_trial,
    run_orders,
)
from pernn.runners.runner import make_order, run_order
from pernn.runs import execute
from pernn.store import RunDirectory
from runners.test_runners import SPEC, SPECS, Ear

RUN = SPEC.fingerprint()


@pytest.fixture
def watch(tmp_path: Path) -> JournalWatch:
    watch = JournalWatch(tmp_path, Ear())
    watch.begin(RUN)
    return watch


def test_how_a_trial_gets_on_is_read_in_its_files(tmp_path: Path, watch: JournalWatch) -> None:
    watch.look({RUN: SPEC})
    assert not watch.on_event
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update != 12)
    watch.look({RUN: SPEC})
    watch.look({RUN: SPEC})
    assert watch.on_event == [TrialEvent("running", RUN), TrialEvent("running", RUN, 12)]
    assert watch.find_end(SPEC) == TrialEvent("stopped", RUN, 12)


def test_what_a_trial_had_to_mend_is_a_warning(tmp_path: Path, watch: JournalWatch) -> None:
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update != 12)
    RunDirectory(tmp_path, RUN).note("metrics restored", reason="they were cut")
    watch.look({RUN: SPEC})
    warnings = [event for event in watch.on_event if event.is_warning]
    assert [event.message for event in warnings] == ["metrics restored: they were cut"]


def test_only_what_this_attempt_wrote_is_its_end(tmp_path: Path, watch: JournalWatch) -> None:
    assert watch.find_end(SPEC) is None
    run = RunDirectory(tmp_path, RUN)
    run.path.mkdir(parents=True)
    run.note("failed", reason="no GPU", error="MachineError")
    assert watch.find_end(SPEC) == TrialEvent("failed", RUN, message="no GPU", error="MachineError")
    watch.begin(RUN)
    assert watch.find_end(SPEC) is None
    with run.locked():
        assert watch.find_end(SPEC).elsewhere
    execute(SPEC, tmp_path, device="cpu")
    assert watch.find_end(SPEC) == TrialEvent("finished", RUN, 30)
    watch.begin(RUN)
    assert watch.find_end(SPEC).elsewhere


def test_a_machine_runs_trials_in_turn_and_leaves_the_rest(tmp_path: Path) -> None:
    folder = DriverFolder(tmp_path)
    where = {"device": "cpu", "threads": 1, "expired": {}}
    orders = [make_order(spec, tmp_path, **where) for spec in SPECS[:2]]
    orders[0]["spec"]["core"]["kind"] = "one of another package"
    asked = iter([True, False])
    (end,) = run_orders(str(folder.path), orders, lambda: next(asked))
    assert (end.state, end.error[-11:]) == ("failed", "ConfigError")
    assert (tmp_path / "workers.log").exists()
    folder.remove()
    assert not folder.path.exists()


def test_a_trial_gets_its_share_of_a_gpu_or_says_that_there_is_none(tmp_path: Path) -> None:
    where = {"device": "cuda:99", "threads": 1, "expired": {}}
    order = make_order(SPEC, tmp_path, gpu_share=0.25, **where)
    end = run_order(order, Ear(), lambda: True)
    assert (end.state, end.error) == ("failed", "MachineError")
    assert "no device 'cuda:99' here" in end.message


def test_a_machine_that_does_not_share_the_directory_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0)
    with pytest.raises(MachineError, match=r"does not see .* all machines of the cluster share"):
        check_machine(tmp_path / "elsewhere")


def test_a_machine_with_other_code_is_told(tmp_path: Path, monkeypatch) -> None:
    folder = DriverFolder(tmp_path)
    check_machine(folder.path)
    ours = cluster.describe_code()
    monkeypatch.setattr(cluster, "describe_code", lambda: {**ours, "pernn": "9.9"})
    with pytest.raises(MachineError, match=r"has pernn 9\.9 where the driver has "):
        check_machine(folder.path)


@pytest.mark.parametrize(
    ("device", "gpus", "wanted"), [("auto", 0, "cpu"), ("auto", 0.25, "cuda"), ("cuda", 1, "cuda")]
)
def test_a_trial_has_the_device_it_was_given(device: str, gpus: float, wanted: str) -> None:
    assert device_of_trial(device, gpus) == wanted


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 0), ("cpu", 0.5), ("cuda:1", 1)])
def test_contradictions_of_device_and_gpus_are_refused(device: str, gpus: float) -> None:
    with pytest.raises(ConfigError):
        device_of_trial(device, gpus)
