"""Runners: the same records everywhere, whatever dies."""

import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from scenarios.trials import Driver, newest, wait_until

from pernn.lab.runners import InlineRunner, Limits, LocalRunner, Runner, TrialEvent, local
from pernn.lab.runners.worker import LOG, Child
from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory, read_status
from tiny import tiny

SPEC = tiny("reverse_ordering", "elman", training={"iterations": 30, "checkpoint_interval": 10})
SPECS = [SPEC.override({"seed": seed}) for seed in range(4)]
LONG = SPEC.override({"training.iterations": 1_000_000, "training.checkpoint_interval": 20})


class Ear(list[TrialEvent]):
    def __call__(self, event):
        self.append(event)

    def ends(self):
        return {e.run: e.state for e in self if e.is_end}


def results(root, specs):
    return [(root / "runs" / s.fingerprint() / "result.json").read_bytes() for s in specs]


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    root = tmp_path_factory.mktemp("inline")
    ear = Ear()
    runner = InlineRunner(device="cpu")
    assert isinstance(runner, Runner)
    runner.run(SPECS, root, ear)
    assert ear.ends() == {spec.fingerprint(): "finished" for spec in SPECS}
    return results(root, SPECS)


def test_what_nobody_foresaw_ends_one_trial_only(tmp_path, monkeypatch, capfd):
    from pernn.lab import runs

    def broken(spec, *words, **more):
        if spec.seed == 1:
            raise RuntimeError("a part of another package\nis broken")
        return execute(spec, *words, **more)

    monkeypatch.setattr(runs, "execute", broken, raising=False)
    ear = Ear()
    InlineRunner(device="cpu").run(SPECS, tmp_path, ear)
    assert list(ear.ends().values()) == ["finished", "failed", "finished", "finished"]
    failed = next(event for event in ear if event.state == "failed")
    assert failed.message == "RuntimeError: a part of another package"
    status = read_status(tmp_path, failed.run)
    assert (status.state, status.reason) == ("failed", failed.message)
    # What pernn did not foresee is logged whole.
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize("runner", [InlineRunner(device="cpu"), LocalRunner(device="cpu")])
def test_a_failed_trial_does_not_end_the_others_and_that_of_another_process_is_tried_again(
    tmp_path, inline, runner
):
    ear, bad = Ear(), SPEC.override({"training.precision": "tf32"})
    busy, *others = (spec.fingerprint() for spec in SPECS)
    with ExitStack() as stack:
        stack.enter_context(RunDirectory(tmp_path, busy).locked())

        def on_event(event):
            ear(event)
            if [e.run for e in ear if e.state == "finished"] == others:
                stack.close()

        runner.run([SPECS[0], bad, *SPECS[1:]], tmp_path, on_event)
    assert sum(e.elsewhere for e in ear if e.run == busy) == 1
    ends = ear.ends()
    assert ends.pop(bad.fingerprint()) == "failed"
    assert "tf32 needs a CUDA device" in next(e.message for e in ear if e.state == "failed")
    assert ends == {spec.fingerprint(): "finished" for spec in SPECS}
    assert results(tmp_path, SPECS) == inline


STAND_IN = """
import os, torch
from pathlib import Path
from pernn.lab.training import devices

torch.cuda.device_count = lambda: 2

def tell(text):
    with Path(r"{told}", str(os.getpid())).open("a") as file:
        file.write(text)

def choose(name="auto"):
    tell(name)
    return torch.device("cpu")

devices.choose_device = choose
devices.limit_gpu_memory = lambda name, share: tell(f"{{share:g}} of {{name}}, on ")
"""
"""A `sitecustomize.py`: two GPUs of a machine that has none, each the CPU under another name."""


def test_workers_share_the_gpus_of_their_machine(tmp_path, monkeypatch):
    """Three workers on two GPUs: two take half of the first one each, one all of the second."""
    told = tmp_path / "told"
    told.mkdir()
    (tmp_path / "sitecustomize.py").write_text(STAND_IN.format(told=told))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ear = Ear()
    LocalRunner(jobs=3).run(SPECS[:3], tmp_path / "results", ear)
    assert set(ear.ends().values()) == {"finished"}
    found = sorted(path.read_text() for path in told.iterdir())
    assert found == [*["0.5 of cuda:0, on cuda:0"] * 2, "cuda:1"]


def test_a_new_worker_takes_the_gpu_of_the_dead_one(tmp_path, monkeypatch):
    orders = []
    monkeypatch.setattr(Child, "send", lambda self, content: orders.append(content))

    def drive(pool, schedule):
        for spec in SPECS[:2]:
            schedule.running[spec.fingerprint()] = spec
            pool.start(spec, {})
        first = next(iter(pool.trials))
        first.process.kill()
        while pool.trials.get(first) is not None:
            pool.look()
        pool.start(SPECS[2], {})

    monkeypatch.setattr(local, "drive", drive)
    LocalRunner(jobs=2, device="cpu").run(SPECS[:3], tmp_path, Ear())
    assert [(one["worker"], one["num_workers"]) for one in orders] == [(0, 2), (1, 2), (0, 2)]


@pytest.mark.parametrize("asked", [True, False])
def test_at_a_limit_the_running_trial_is_checkpointed_and_left(tmp_path, asked):
    ear = Ear()
    directory = RunDirectory(tmp_path, LONG.fingerprint())
    begun = time.monotonic()
    limits = (
        Limits(paused=lambda: bool(directory.checkpoints.updates()))
        if asked
        else Limits(seconds=1.0)
    )
    InlineRunner(device="cpu", limits=limits).run([LONG, SPEC], tmp_path, ear)
    assert asked or time.monotonic() - begun >= 0.9
    assert ear.ends() == {LONG.fingerprint(): "stopped"}
    assert directory.checkpoints.updates()[-1] == directory.read_journal()[-1]["update"]
    assert ("pause" if asked else "1 s") in limits.reason


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_checkpoint_and_leave(tmp_path, number):
    ear = Ear()

    def on_event(event):
        ear(event)
        if event.update == 7:
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        InlineRunner(device="cpu").run([LONG, SPEC], tmp_path, on_event)
    assert ear.ends() == {LONG.fingerprint(): "stopped"}
    assert RunDirectory(tmp_path, LONG.fingerprint()).checkpoints.updates() == [7]


def workers_of(process):
    words = ["pgrep", "--parent", str(process), "--full", "pernn.lab.runners.worker"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def test_a_killed_worker_is_replaced_until_it_dies_too_often(tmp_path, monkeypatch):
    # The number itself is tested with the schedule; a worker takes seconds to start.
    monkeypatch.setattr("pernn.lab.runners.schedule.MAX_DEATHS", 2)
    ear = Ear()
    killed: list[int] = []

    def on_event(event):
        ear(event)
        if event.update == 0 and not event.is_end:
            # The journal's line is written before the first update of a life.
            directory = RunDirectory(tmp_path, LONG.fingerprint())
            wait_until(lambda: len(directory.read_journal()) > len(killed))
            wait_until(lambda: newest(tmp_path, LONG) > 0)
            (worker,) = workers_of(os.getpid())
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    LocalRunner(jobs=1, device="cpu").run([LONG], tmp_path, on_event)
    assert len(killed) == 2
    assert ear.ends() == {LONG.fingerprint(): "failed"}
    assert "signal 9" in ear[-1].message
    events = [line["event"] for line in RunDirectory(tmp_path, LONG.fingerprint()).read_journal()]
    assert events == ["started", "resumed", "failed"]


def test_a_killed_driver_takes_its_workers_along(tmp_path):
    with Driver(tmp_path, [LONG], 2) as driver:
        wait_until(lambda: newest(tmp_path, LONG) > 0)
        driver.process.kill()
        driver.process.wait()
        wait_until(lambda: read_status(tmp_path, LONG.fingerprint()).state == "stopped")


PART = """
from typing import Literal

from pernn.lab.encodings import NoneConfig


print("said by a part")


class OwnConfig(NoneConfig):
    kind: Literal["own"] = "own"
"""


def test_a_worker_takes_modules_of_the_users_folder_last(tmp_path, monkeypatch):
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "part_beside_random.py").write_text(PART)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = SPEC.override({"encoding": "part_beside_random:OwnConfig"})
    ear = Ear()
    LocalRunner(jobs=1, device="cpu").run([spec], Path("results"), ear)
    assert ear.ends() == {spec.fingerprint(): "finished"}, ear
    assert "said by a part" in Path("results", LOG).read_text()
