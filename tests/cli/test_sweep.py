"""Control of a sweep: limits, priorities, pause, what failed, and a grid that grows."""

import math
import random
from contextlib import nullcontext
from dataclasses import replace

import pytest

from cli.tiny import CHANGES
from pernn.errors import ConfigError, MachineError
from pernn.lab import sweeps
from pernn.lab.cli import options
from pernn.lab.cli.options import LEFT_EARLY, RUNNERS_OF, Launch, read_duration
from pernn.lab.cli.run import carry_out, pause
from pernn.lab.runners import InlineRunner, Limits, LocalRunner, RayRunner, TrialEvent
from pernn.lab.runs import execute
from pernn.lab.store import (
    RunDirectory,
    is_done,
    is_pause_requested,
    load_sweep,
    read_status,
    save_sweep,
    sweep_directory,
)
from pernn.lab.sweeps import plan_again, plan_sweep, report_of
from pernn.lab.trials import gather
from store.finished import logged

OVERRIDES = CHANGES | {"training.iterations": 2, "training.checkpoint_interval": 1}


class InThisProcess(LocalRunner):
    def run(self, specs, root, on_event):
        InlineRunner(self.device, self.threads, self.limits).run(specs, root, on_event)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Starting processes and drawing take longer than these trials, and are tested elsewhere."""
    monkeypatch.setattr(options, "LocalRunner", InThisProcess)
    monkeypatch.setattr("pernn.lab.sweeps.make_report", without_drawing)


def without_drawing(root, plan, complain):
    page = sweep_directory(root, plan.sweep.name) / "index.html"
    page.write_text("")
    report = report_of(root, plan, complain)
    vars(report).update(paths=(page,), verdicts=())
    return report


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """What measuring would find; it is tested with the estimates."""
    found = {"seconds": [0.001, 0.002], "checkpoint": 10}
    monkeypatch.setattr(
        "pernn.lab.runs.estimates.measure", lambda *_: (found["seconds"], found["checkpoint"])
    )
    return found


@pytest.fixture
def plan():
    return plan_sweep("vocabulary_size", "demo", OVERRIDES)


ASKED = pytest.raises(KeyboardInterrupt)


def counted(root, runs):
    return sum(is_done(root, run) for run in runs)


def test_a_failed_trial_is_run_again_from_its_last_checkpoint(tmp_path, plan):
    begun, died, *_ = (RunDirectory(tmp_path, run) for run in plan.sweep.runs)
    execute(plan.specs[begun.fingerprint], tmp_path, device="cpu", on_update=lambda update: False)
    begun.note("failed", update=1, reason="no space left")
    died.path.mkdir(parents=True)
    died.note("failed", reason="its worker died 3 times")
    assert {read_status(tmp_path, one.fingerprint).state for one in (begun, died)} == {"failed"}
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == 0
    assert counted(tmp_path, plan.sweep.runs) == 5
    events = [(line["event"], line.get("update")) for line in begun.read_journal()]
    assert events[-2:] == [("resumed", 1), ("finished", 2)]


def test_only_a_report_of_all_trials_that_cannot_have_changed_is_kept(tmp_path, plan):
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == 0
    report = sweep_directory(tmp_path, plan.sweep.name) / "claims.json"
    report.write_text('{"num_finished": 5}')
    assert plan.is_reported(tmp_path)
    own = replace(plan, experiment=replace(plan.experiment, name="own"))
    assert not own.is_reported(tmp_path)
    (RunDirectory(tmp_path, plan.sweep.runs[0]).path / "result.json").unlink()
    assert not plan.is_reported(tmp_path)


@pytest.mark.parametrize(
    ("tty", "expected"), [(False, pytest.raises(ConfigError, match="say --yes")), (True, ASKED)]
)
def test_more_than_a_day_is_asked_for(tmp_path, measured, monkeypatch, tty, expected, plan):
    measured["seconds"] = [1e5]
    monkeypatch.setattr("sys.stdin.isatty", lambda: tty, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with expected:
        carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True)
    assert not any(tmp_path.iterdir())
    launch = Launch(device="cpu", max_trials=1)
    assert carry_out(plan, tmp_path, launch, as_json=True) == LEFT_EARLY
    assert carry_out(plan, tmp_path, Launch(device="cpu", yes=True), as_json=True) == 0


def test_limits_leave_early_and_a_pause_is_heard_and_withdrawn(tmp_path, capsys, monkeypatch, plan):
    launch = Launch(device="cpu", max_trials=2)
    assert carry_out(plan, tmp_path, launch, as_json=True) == LEFT_EARLY
    said = capsys.readouterr().err
    assert "2 of 5 trials are finished" in said
    assert f"pernn resume {plan.sweep.name}" in said
    pause(plan.sweep.name, results=tmp_path)
    assert is_pause_requested(tmp_path, plan.sweep.name)
    assert carry_out(plan, tmp_path, launch, as_json=True) == LEFT_EARLY
    assert not is_pause_requested(tmp_path, plan.sweep.name)
    assert counted(tmp_path, plan.sweep.runs) == 4

    class Paused(InThisProcess):
        def run(self, specs, root, on_event):
            pause(plan.sweep.name, results=tmp_path)
            super().run(specs, root, on_event)

    monkeypatch.setattr(options, "LocalRunner", Paused)
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == LEFT_EARLY
    assert "a pause was asked for" in capsys.readouterr().err
    assert counted(tmp_path, plan.sweep.runs) == 4


def test_a_pause_while_updates_are_timed_is_heard(tmp_path, capsys, monkeypatch, plan):
    save_sweep(tmp_path, plan.sweep)

    def ask_for_a_pause(*_):
        pause(plan.sweep.name, results=tmp_path)
        return [0.001], 10

    monkeypatch.setattr("pernn.lab.runs.estimates.measure", ask_for_a_pause)
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == LEFT_EARLY
    assert counted(tmp_path, plan.sweep.runs) == 0


def test_what_cannot_fit_is_refused_before_it_begins(tmp_path, measured, plan):
    measured["checkpoint"] = 10**15
    with pytest.raises(MachineError, match=r"are free: [\d.]+ PB too little.*--force"):
        carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True)
    assert not (tmp_path / "runs").exists()
    launch = Launch(device="cpu", force=True, max_trials=1)
    assert carry_out(plan, tmp_path, launch, as_json=True) == LEFT_EARLY


def test_one_seed_of_everything_comes_first(tmp_path):
    plan = plan_sweep("vocabulary_size", "demo", {})
    by_grid, by_seed = list(plan.specs.values()), plan.missing(tmp_path)
    assert [spec.seed for spec in by_seed] == sorted(spec.seed for spec in by_grid)
    for seed in {spec.seed for spec in by_grid}:
        assert [s for s in by_seed if s.seed == seed] == [s for s in by_grid if s.seed == seed]


def test_a_grid_that_grows_keeps_what_is_finished(tmp_path, monkeypatch):
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
    large = plan_again(load_sweep(tmp_path, small.sweep.name))
    assert set(large.specs) > set(small.specs)
    assert carry_out(large, tmp_path, launch, as_json=True) == 0
    assert all(read_status(tmp_path, run).state == "finished" for run in large.specs)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before} == before


TUNED = OVERRIDES | {"~training.learning_rate": "0.01:0.04:3"}


def measured_at(root, specs, best):
    for spec in specs:
        one = random.Random()
        one.random = lambda rate=spec.training.learning_rate: 0.9 - abs(math.log(rate / best)) / 10
        logged(root, spec, one, [])
    return {run.run: run for run in gather(root, [spec.fingerprint() for spec in specs])}


def test_what_ran_here_chooses_and_damage_does_not(tmp_path):
    plan = plan_sweep("vocabulary_size", "demo", TUNED)
    specs = [*plan.specs.values()]
    measured_at(tmp_path, specs, 0.02)
    published = measured_at(tmp_path / "other", specs, 0.01)
    assert {*replace(plan, published=published).grown(tmp_path).chosen.values()} == {0.02}
    (RunDirectory(tmp_path, specs[0].fingerprint()).path / "result.json").write_text("{")
    assert {*replace(plan, published=published).grown(tmp_path).chosen.values()} == {0.02}
    assert plan.grown(tmp_path).chosen == {}


def test_a_tuned_sweep_keeps_what_it_finished_when_published_trials_are_out_of_sight(tmp_path):
    plan = plan_sweep("vocabulary_size", "demo", TUNED)
    published = measured_at(tmp_path / "other", plan.specs.values(), 0.02)
    grown = replace(plan, published=published).grown(tmp_path)
    *_, judged, other = grown.specs.values()
    measured_at(tmp_path, [judged], 0.02)
    for one in (grown, plan):
        sweeps.save_plan(tmp_path, one)
    runs = load_sweep(tmp_path, plan.sweep.name).runs
    assert [*runs] == [*plan.specs, judged.fingerprint()]
    assert other.fingerprint() not in runs


def test_work_that_is_left_comes_before_a_failure_in_the_exit_status(tmp_path, monkeypatch, plan):
    class Stopped(InThisProcess):
        def run(self, specs, root, on_event):
            on_event(TrialEvent("failed", specs[0].fingerprint(), message="lost"))
            self.limits.reason = "a pause was asked for"

    monkeypatch.setattr(options, "LocalRunner", Stopped)
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == LEFT_EARLY


def test_a_runner_may_be_used_again_after_a_limit(tmp_path, plan):
    runner = InThisProcess(device="cpu", limits=Limits(trials=2))
    watch = {"watch": lambda specs: nullcontext(lambda event: None), "evidence": None}
    found = [sweeps.run_sweep(plan, tmp_path, runner, **watch).stopped for _ in range(3)]
    assert found == ["--max-trials 2 reached"] * 2 + [""]
    assert counted(tmp_path, plan.sweep.runs) == 5
    assert not runner.limits.paused()


def test_options_are_read_and_given_to_their_runner_alone():
    texts = ("90s", "55m", "1.5h", "3h50m", "1h30m15s", "11:30:00", "0:00:05")
    assert [*map(read_duration, texts)] == [90, 3300, 5400, 13800, 5415, 41400, 5]
    for text in ("", "55", "-5m", "0s", "1:60:00", "nan", "1e5s", "5 m", "٣m", "5m3h"):
        with pytest.raises(ConfigError, match="a time is invalid"):
            read_duration(text)
    assert make("inline") == InlineRunner(threads=2, limits=LIMITS)
    assert make("ray") == RayRunner(threads=2, limits=LIMITS)
    assert make("ray", address="host:1", jobs=9, gpus_per_trial=0.25) == RayRunner(
        "host:1", 9, "auto", 2, gpus_per_trial=0.25, limits=LIMITS
    )
    for name, runners in RUNNERS_OF.items():
        for runner in {"local", "inline", "ray"} - {*runners}:
            option = f"--{name.replace('_', '-')}"
            with pytest.raises(ConfigError, match=f"^{option} applies only to --runner"):
                Launch(runner=runner, **{name: VALUES.get(name, 0)}).make_runner()


def test_what_cannot_be_meant_or_is_lacking_is_refused_before_anything_is_announced(
    tmp_path, monkeypatch, capsys, plan
):
    monkeypatch.setattr("pernn.lab.runners.ray.find_spec", lambda name: None)
    wrong = Launch(device="cpu", address="auto")
    lacking = {
        Launch(device="cuda:99"): "no device 'cuda:99'",
        Launch(runner="ray"): "ray is missing: .* install",
    }
    with pytest.raises(ConfigError, match="--address applies only to --runner ray, not local"):
        carry_out(plan, tmp_path, wrong, as_json=False)
    for launch, said in lacking.items():
        with pytest.raises(MachineError, match=said):
            carry_out(plan, tmp_path, launch, as_json=False)
    assert capsys.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
    assert carry_out(plan, tmp_path, Launch(device="cpu"), as_json=True) == 0
    # Nothing is asked of a machine that has nothing to run, but options must still make sense.
    for launch in lacking:
        assert carry_out(plan, tmp_path, launch, as_json=True) == 0
    with pytest.raises(ConfigError, match="--address applies only to --runner ray, not local"):
        carry_out(plan, tmp_path, wrong, as_json=True)


def make(runner, **given):
    launch = Launch(runner=runner, threads=2, oversubscribe=runner in HERE, **given)
    made = launch.make_runner()
    assert made.limits == Limits(begun=launch.begun)
    return replace(made, limits=LIMITS)


LIMITS, HERE = Limits(), ("local", "inline")
VALUES = {"force": True, "oversubscribe": True, "address": "auto", "gpus_per_trial": 0.0}
