"""Control of a sweep: limits, priorities, pause, what failed for good, and a grid that grows."""

from pathlib import Path

import pytest

from cli.test_cli import TINY
from pernn.cli import placing
from pernn.cli import sweep as sweeps
from pernn.cli.options import read_duration
from pernn.cli.pause import pause
from pernn.cli.retry import retry
from pernn.cli.statuses import LEFT_EARLY
from pernn.cli.sweep import Launch, carry_out, plan_sweep
from pernn.config import parse_assignment
from pernn.errors import ConfigError, MachineError
from pernn.runners import InlineRunner, LocalRunner
from pernn.store import RunDirectory, is_done, is_pause_requested, read_status, save_sweep
from pernn.sweeps import find_trials

OVERRIDES = dict(
    parse_assignment(text) for text in [*TINY, "encoding.kind=sinusoidal", "task.vocab_size=4"]
)


class InThisProcess(LocalRunner):
    def run(self, specs, root, on_event) -> None:
        InlineRunner(self.device, self.threads, self.limits).run(specs, root, on_event)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting processes takes longer than these trials, and is tested elsewhere."""
    monkeypatch.setattr(placing, "LocalRunner", InThisProcess)


def counted(root: Path, runs) -> int:
    return sum(is_done(root, run) for run in runs)


def test_a_failed_trial_is_left_out_until_it_is_retried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = plan_sweep("vocabulary_size", "demo", OVERRIDES)
    spec = find_trials(sweep)[sweep.runs[1]]
    directory = RunDirectory(tmp_path, sweep.runs[1])
    with directory.locked():
        directory.write_spec(spec.dump())
        directory.note("failed", update=3, reason="the loss became nan")
    launch = Launch(device="cpu")
    assert carry_out(sweep, tmp_path, launch, as_json=True) == 1
    said = capsys.readouterr().err
    assert f"{sweep.runs[1]} failed before and was left out: the loss became nan" in said
    assert f"pernn retry {sweep.name} --failed" in said
    assert counted(tmp_path, sweep.runs) == 4
    status = retry(sweep.name, failed=True, device="cpu", results=tmp_path, as_json=True)
    assert status == 0
    assert counted(tmp_path, sweep.runs) == 5
    assert retry(sweep.name, failed=True, results=tmp_path) == 0
    assert "No trial" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "either --failed or --run"),
        ({"failed": True, "run": "0" * 16}, "either --failed or --run"),
        ({"run": "0" * 16}, "is no trial of"),
    ],
)
def test_what_to_retry_must_be_said(tmp_path: Path, words: dict[str, object], said: str) -> None:
    sweep = plan_sweep("vocabulary_size", "demo", OVERRIDES)
    save_sweep(tmp_path, sweep)
    with pytest.raises(ConfigError, match=said):
        retry(sweep.name, results=tmp_path, **{"failed": False, "run": None, **words})


def test_limits_leave_early_and_a_pause_is_heard_and_withdrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = plan_sweep("vocabulary_size", "demo", OVERRIDES)
    launch = Launch(device="cpu", max_trials=2)
    assert carry_out(sweep, tmp_path, launch, as_json=True) == LEFT_EARLY
    said = capsys.readouterr().err
    assert "2 of 5 trials are done" in said
    assert f"pernn resume {sweep.name}" in said
    pause(sweep.name, results=tmp_path)
    assert is_pause_requested(tmp_path, sweep.name)
    assert carry_out(sweep, tmp_path, launch, as_json=True) == LEFT_EARLY
    assert not is_pause_requested(tmp_path, sweep.name)
    assert counted(tmp_path, sweep.runs) == 4

    class Paused(InThisProcess):
        def run(self, specs, root, on_event) -> None:
            pause(sweep.name, results=tmp_path)
            super().run(specs, root, on_event)

    monkeypatch.setattr(placing, "LocalRunner", Paused)
    assert carry_out(sweep, tmp_path, Launch(device="cpu"), as_json=True) == LEFT_EARLY
    assert "a pause was asked for" in capsys.readouterr().err
    assert counted(tmp_path, sweep.runs) == 4


def test_what_cannot_fit_is_refused_before_it_begins(tmp_path: Path) -> None:
    sweep = plan_sweep("vocabulary_size", "demo", OVERRIDES | {"core.hidden_size": 1_000_000})
    with pytest.raises(MachineError, match=r"are free: [\d.]+ TB too little.*--force"):
        carry_out(sweep, tmp_path, Launch(device="cpu"), as_json=True)
    assert not (tmp_path / "runs").exists()


def test_one_seed_of_everything_comes_first() -> None:
    specs = list(find_trials(plan_sweep("vocabulary_size", "demo", {})).values())
    by_cell = sorted(specs, key=lambda spec: (spec.encoding.kind, spec.task.name, spec.seed))
    by_seed = Launch().sort(by_cell)
    assert by_seed != by_cell
    assert [spec.seed for spec in by_seed] == sorted(spec.seed for spec in specs)
    for seed in {spec.seed for spec in specs}:
        assert [s for s in by_seed if s.seed == seed] == [s for s in by_cell if s.seed == seed]
    assert Launch(order="grid").sort(by_cell) == by_cell


def test_a_grid_that_grows_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sweeps.trials
    monkeypatch.setattr(sweeps, "trials", lambda *words: whole(*words)[1::2])
    small = plan_sweep("vocabulary_size", "demo", OVERRIDES)
    launch = Launch(device="cpu")
    assert carry_out(small, tmp_path, launch, as_json=True) == 0
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (tmp_path / "runs").rglob("*")
        if path.is_file()
    }
    monkeypatch.setattr(sweeps, "trials", whole)
    large = sweeps.reload_sweep(tmp_path, small.name)
    assert set(large.runs) > set(small.runs)
    assert carry_out(large, tmp_path, launch, as_json=True) == 0
    assert all(read_status(tmp_path, run).state == "finished" for run in large.runs)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before} == before


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("55m", 3300), ("1.5h", 5400), ("11:30:00", 41400), ("0:00:05", 5)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "55", "-5m", "0s", "1:60:00", "nan", "1e5s", "5 m", "٣m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a time"):
        read_duration(text)


def test_options_that_cannot_be_meant_are_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    sweep = plan_sweep("vocabulary_size", "demo", OVERRIDES)
    launch = Launch(device="cpu", runner_name="ray", placing={"--partition": "gpu"})
    with pytest.raises(ConfigError, match="--partition does not concern --runner ray"):
        carry_out(sweep, tmp_path, launch, as_json=True)
    assert not list(tmp_path.iterdir())
    # Also where nothing is left to run.
    assert carry_out(sweep, tmp_path, Launch(device="cpu"), as_json=True) == 0
    with pytest.raises(ConfigError, match="--partition does not concern --runner ray"):
        carry_out(sweep, tmp_path, launch, as_json=True)
