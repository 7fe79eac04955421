"""Dispatching to a cluster: what is busy, stopped or dead is tried again, and only so often."""

import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from pernn.errors import ConfigError, MachineError
from pernn.runners import Limits, TrialEvent, jobs, waiting
from pernn.runners.dispatch import Ended, device_of_job, dispatch
from pernn.runners.jobs import JobFolder, carry, check_machine
from pernn.runners.local import MAX_DEATHS
from pernn.runs import execute
from pernn.store import RunDirectory
from runners.test_runners import LONG, SPEC, SPECS, Ear


class Threads:
    """A cluster of one thread per job; jobs named in `deaths` die before their first trial."""

    def __init__(self, deaths: int = 0) -> None:
        self.deaths = deaths
        self.over: SimpleQueue[Ended] = SimpleQueue()
        self.stopping = threading.Event()
        self.num_sent = 0

    def room(self) -> int:
        return 2

    def send(self, orders: Sequence[Mapping[str, Any]]) -> None:
        for order in orders:
            self.num_sent += 1
            threading.Thread(target=self.carry, args=(order,)).start()

    def carry(self, order: Mapping[str, Any]) -> None:
        if self.deaths:
            self.deaths -= 1
            self.over.put(Ended(order["job"], [], "the machine burnt"))
            return
        ends = carry(order, lambda: not self.stopping.is_set())
        self.over.put(Ended(order["job"], [TrialEvent(**end) for end in ends]))

    def ended(self) -> list[Ended]:
        try:
            return [self.over.get(timeout=0.05)]
        except Empty:
            return []

    def stop(self) -> None:
        self.stopping.set()


def go(cluster: Threads, specs, root: Path, hear=None, **more) -> tuple[Ear, JobFolder]:
    ear, folder = Ear(), JobFolder(root)
    settings = {"device": "cpu", "threads": 1, "busy_seconds": 0.1, "limits": Limits(), **more}
    dispatch(cluster, specs, folder, hear or ear, **settings)
    return ear, folder


def test_trials_end_and_are_heard_in_the_order_of_events(tmp_path: Path) -> None:
    ear, folder = go(Threads(), SPECS, tmp_path, trials_per_job=3)
    assert ear.ends() == {spec.fingerprint(): "finished" for spec in SPECS}
    for spec in SPECS:
        kinds = [event.kind for event in ear if event.run == spec.fingerprint()]
        assert kinds[0] == "started"
        assert kinds.count("finished") == 1
        assert kinds[-1] == "finished"
    folder.remove()
    assert not folder.path.exists()


def test_what_another_driver_finished_is_not_sent(tmp_path: Path) -> None:
    execute(SPEC, tmp_path, device="cpu")
    cluster = Threads()
    ear, _ = go(cluster, [SPEC], tmp_path)
    assert ear.ends() == {SPEC.fingerprint(): "already done"}
    assert cluster.num_sent == 0


def test_a_busy_trial_is_tried_again_later(tmp_path: Path) -> None:
    cluster = Threads()
    ear = Ear()

    def release() -> None:
        with RunDirectory(tmp_path, SPEC.fingerprint()).locked():
            held.set()
            while cluster.num_sent < 3:
                time.sleep(0.01)

    held = threading.Event()
    holder = threading.Thread(target=release)
    holder.start()
    assert held.wait(10)
    ear, _ = go(cluster, [SPEC], tmp_path)
    holder.join()
    assert cluster.num_sent >= 3
    assert ear.ends() == {SPEC.fingerprint(): "finished"}


def test_a_trial_that_stays_busy_is_left_to_whoever_holds_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(waiting, "NUM_BUSY_TRIES", 2)
    cluster = Threads()
    with RunDirectory(tmp_path, SPEC.fingerprint()).locked():
        ear, _ = go(cluster, [SPEC], tmp_path)
    assert ear.ends() == {SPEC.fingerprint(): "busy"}
    assert cluster.num_sent == 2


def test_a_dead_job_costs_only_the_trial_that_it_was_at(tmp_path: Path) -> None:
    cluster = Threads(deaths=MAX_DEATHS)
    ear, _ = go(cluster, SPECS, tmp_path, trials_per_job=4)
    # The first of the job is blamed each time; the others go on.
    failed = [event for event in ear if event.kind == "failed"]
    assert len(failed) == 1
    assert failed[0].message == f"its worker died {MAX_DEATHS} times, last: the machine burnt"
    assert sorted(ear.ends().values()) == ["failed", "finished", "finished", "finished"]


def test_an_interrupt_checkpoints_what_runs(tmp_path: Path) -> None:
    heard: list[TrialEvent] = []

    def hear(event: TrialEvent) -> None:
        if event.kind == "progress" and all(one.kind != "progress" for one in heard):
            signal.raise_signal(signal.SIGINT)
        heard.append(event)

    with pytest.raises(KeyboardInterrupt):
        go(Threads(), [LONG], tmp_path, hear)
    assert heard[-1].kind == "stopped"
    run = RunDirectory(tmp_path, LONG.fingerprint())
    assert run.read_journal()[-1]["event"] == "stopped"
    assert run.checkpoints.updates()


def test_what_was_stopped_unasked_goes_on_elsewhere(tmp_path: Path) -> None:
    cluster = Threads()
    stops = iter([True, False])

    class Leaving(Threads):
        def carry(self, order: Mapping[str, Any]) -> None:
            # The first machine is taken away before it begins.
            if next(stops):
                self.stopping.set()
            super().carry(order)
            self.stopping.clear()

    cluster = Leaving()
    ear, _ = go(cluster, [SPEC], tmp_path)
    assert cluster.num_sent == 2
    assert ear.ends() == {SPEC.fingerprint(): "finished"}


def test_a_limit_of_trials_is_kept(tmp_path: Path) -> None:
    cluster, limits = Threads(), Limits(trials=2)
    ear, _ = go(cluster, SPECS, tmp_path, limits=limits)
    assert list(ear.ends().values()) == ["finished", "finished"]
    assert cluster.num_sent == 2
    assert limits.reason == "2 trials were to be finished"


def test_a_pause_checkpoints_what_runs(tmp_path: Path) -> None:
    heard: list[TrialEvent] = []
    limits = Limits(paused=lambda: any(event.kind == "progress" for event in heard))
    go(Threads(), [LONG], tmp_path, heard.append, limits=limits)
    assert heard[-1].kind == "stopped"
    assert limits.reason == "a pause was asked for"
    assert RunDirectory(tmp_path, LONG.fingerprint()).checkpoints.updates()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    path = folder.path / "000001.jsonl"
    assert folder.news("000001") == []
    path.write_text('{"kind": "started", "run": "a"}\n{"kind": "prog')
    assert [event.kind for event in folder.news("000001")] == ["started"]
    with path.open("a") as file:
        file.write('ress", "run": "a", "update": 3}\n')
    assert [event.update for event in folder.news("000001")] == [3]


def test_a_machine_that_does_not_share_the_directory_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0)
    with pytest.raises(MachineError, match=r"does not see .* all machines of the cluster share"):
        check_machine(tmp_path / "elsewhere")


def test_a_machine_with_other_code_is_told(tmp_path: Path, monkeypatch) -> None:
    folder = JobFolder(tmp_path)
    check_machine(folder.path)
    ours = jobs.describe_code()
    monkeypatch.setattr(jobs, "describe_code", lambda: {**ours, "pernn": "9.9"})
    with pytest.raises(MachineError, match=r"has pernn 9\.9 where the driver has "):
        check_machine(folder.path)


@pytest.mark.parametrize(
    ("device", "gpus", "wanted"), [("auto", 0, "cpu"), ("auto", 0.25, "cuda"), ("cuda", 1, "cuda")]
)
def test_a_trial_has_the_device_it_was_given(device: str, gpus: float, wanted: str) -> None:
    assert device_of_job(device, gpus) == wanted


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 0), ("cpu", 0.5), ("cuda:1", 1)])
def test_contradictions_of_device_and_gpus_are_refused(device: str, gpus: float) -> None:
    with pytest.raises(ConfigError):
        device_of_job(device, gpus)
