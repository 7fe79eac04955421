"""SLURM through submitit: real processes by its local executor; the file that SLURM would get.

No SLURM is needed, and none was tried. That it computes the same, and an interrupt:
tests/runners/test_same_records.py.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from command_line import call
from pernn.errors import ConfigError, MachineError, StoreError
from pernn.runners import Limits, SlurmRunner, TrialEvent
from pernn.runners import slurm as slurm_runner
from pernn.runners.cluster import DriverFolder
from pernn.store import RunDirectory
from runners.test_runners import SPEC, SPECS, Ear, results

NEEDS_SUBMITIT = "submitit is not installed: pip install 'pernn[slurm]'"
MEDIUM = SPEC.override({"training.iterations": 2000, "training.checkpoint_interval": 500})


def jobs_of(process: int) -> list[int]:
    """The processes that carry out submitit's jobs: controllers are children, jobs theirs."""
    found = subprocess.run(
        ["pgrep", "--parent", str(process)], capture_output=True, text=True, check=False
    )
    children = [int(word) for word in found.stdout.split()]
    mine = [
        pid
        for pid in children
        if b"submitit.core._submit" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return mine or [job for child in children for job in jobs_of(child)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    root = tmp_path_factory.mktemp("alone")
    # In a process of its own: with the checks of types it takes five times as long.
    (root / "trial.json").write_text(json.dumps(MEDIUM.dump()))
    assert call("train", "trial.json", "--device", "cpu", cwd=root).returncode == 0
    return results(root / "results", [MEDIUM])


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGUSR2,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_job_that_must_leave_goes_on_from_where_it_was(
    tmp_path: Path, alone: list[bytes], number: signal.Signals
) -> None:
    pytest.importorskip("submitit", reason=NEEDS_SUBMITIT)
    ear = Ear()
    signalled: list[int] = []

    def on_event(event: TrialEvent) -> None:
        ear(event)
        if event.update and not signalled:
            signalled.extend(jobs_of(os.getpid()))
            for job in signalled:
                os.kill(job, number)

    SlurmRunner(executor="local", device="cpu").run([MEDIUM], tmp_path, on_event)
    assert len(signalled) == 1
    assert ear[-1].state == "finished"
    run = RunDirectory(tmp_path, MEDIUM.fingerprint())
    events = [line["event"] for line in run.read_journal()]
    left = [] if number == signal.SIGKILL else ["stopped"]
    assert events == ["started", *left, "resumed", "finished"]
    assert results(tmp_path, [MEDIUM]) == alone
    assert not list((tmp_path / "drivers").iterdir())


def test_the_submission_has_what_was_asked_for(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("submitit", reason=NEEDS_SUBMITIT)
    programs = tmp_path / "bin"
    programs.mkdir()
    # What SLURM would be given is read below; nothing runs.
    for name in ("sbatch", "srun"):
        (programs / name).write_text("#!/bin/sh\necho Submitted batch job 7\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    root, ear = tmp_path / "results", Ear()
    SlurmRunner(
        partition="gpu", time_limit=120, jobs=1, gpus_per_trial=1, cpus_per_trial=4,
        trials_per_job=2, wait=False,
    ).run(SPECS[:3], root, ear)  # fmt: skip
    (script,) = root.glob("drivers/*/submitit/*_submission.sh")
    asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", script.read_text(), re.MULTILINE))
    wanted = {
        "partition": "gpu", "time": "120", "array": "0-1%1", "gpus-per-node": "1",
        "cpus-per-task": "4", "signal": "USR2@90", "job-name": "pernn",
    }  # fmt: skip
    assert wanted.items() <= asked.items()
    assert len(list(script.parent.glob("*_submitted.pkl"))) == 2
    assert not ear


def test_where_there_is_no_slurm_it_is_told(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("submitit", reason=NEEDS_SUBMITIT)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="no SLURM here"):
        SlurmRunner().run(SPECS, tmp_path, Ear())
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(slurm_runner, "find_spec", lambda name: None)
    with pytest.raises(MachineError, match=r"pip install 'pernn\[slurm\]'"):
        SlurmRunner().run(SPECS, tmp_path, Ear())


@pytest.mark.parametrize(
    "values",
    [
        {"gpus_per_trial": 0.5},
        {"gpus_per_trial": 2},
        {"time_limit": 1},
        {"trials_per_job": 0},
        {"cpus_per_trial": 1.5},
        {"jobs": 0},
        {"threads": 0},
        {"device": "cuda"},
        {"wait": False, "limits": Limits(trials=1)},
    ],
)
def test_what_cannot_be_meant_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        SlurmRunner(**values)


@pytest.mark.parametrize(("mode", "is_refused"), [(0o755, False), (0o777, True), (0o1777, False)])
def test_what_jobs_unpickle_is_written_by_nobody_else(
    tmp_path: Path, mode: int, is_refused: bool
) -> None:
    tmp_path.chmod(mode)
    place = DriverFolder(tmp_path).path / "submitit"
    place.parent.chmod(0o777)
    if is_refused:
        with pytest.raises(StoreError, match=r"can be written by everybody.*chmod o-w"):
            slurm_runner._make_trusted(place, tmp_path)
        return
    slurm_runner._make_trusted(place, tmp_path)
    assert [folder.stat().st_mode & 0o777 for folder in (place, place.parent)] == [0o700, 0o755]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    place = DriverFolder(tmp_path).path / "submitit"
    place.mkdir()
    os.chown(place, 54321, 54321)
    with pytest.raises(StoreError, match="belongs to another user"):
        slurm_runner._make_trusted(place, tmp_path)
