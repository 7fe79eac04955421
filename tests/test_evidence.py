"""Trials as frames; published ones count as done, and reports are rebuilt of them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest
import torch
from scenarios.trials import wait_until

import pernn.lab
from command_line import call, succeed
from pernn.errors import ConfigError, MachineError, StoreError
from pernn.lab import evidence
from pernn.lab.cli.options import Launch, exit_status
from pernn.lab.cli.run import resume
from pernn.lab.evidence import make_study
from pernn.lab.experiments import find_experiment, trials
from pernn.lab.reports import Report, student_interval
from pernn.lab.runners import InlineRunner
from pernn.lab.runs import weights_digest
from pernn.lab.store import RunDirectory, Sweep, load_sweep, save_sweep
from pernn.lab.sweeps import name_sweep
from pernn.lab.trials import publish
from rebuild import rebuild
from tiny import TINY

pytest.importorskip("pyarrow")

NAME = name_sweep("vocabulary_size", "demo", {**TINY, "seed": [111, 222]})
MARKS = "".join(f"<!-- {n} --><!-- /{n} -->\n\n" for n in ("scorecard", "spent", "machines"))


class Noting:
    def __init__(self):
        self.seeds: list[int] = []

    def describe(self):
        return "here"

    def run(self, specs, root, hear):
        self.seeds += [spec.seed for spec in specs]
        InlineRunner(device="cpu").run(specs, root, hear)


def run(root, evidence, *seeds, **more):
    runner, changes = Noting(), {**TINY, "seed": [*seeds]}
    more |= {"overrides": changes, "results": root, "evidence": evidence, "runner": runner}
    return pernn.lab.run("vocabulary_size", **more), runner.seeds


@pytest.fixture(scope="module")
def ran(tmp_path_factory, one_format):
    root = tmp_path_factory.mktemp("ran")
    states: list[str] = []
    hear = {"on_event": lambda event: states.append(event.state)}
    found, seeds = run(root / "results", None, 111, 222, **hear)
    assert seeds == [111, 111, 222, 222]
    assert states.count("finished") == 4
    assert {verdict.verdict for verdict in found.verdicts} == {"not run", "too few seeds"}
    again, seeds = run(str(root / "results"), None, 111, 222)
    assert (again.name, again.page, again.failures, seeds) == (found.name, found.page, [], [])
    publish(root / "results", load_sweep(root / "results", found.name), root / "evidence")
    return root


SAME = ("claims.json", "table.csv", "figure.svg")


def test_published_trials_are_not_trained_again_and_a_reader_adds_a_seed(
    ran, tmp_path, monkeypatch
):
    monkeypatch.setenv("PERNN_EVIDENCE", str(ran / "evidence"))
    found, seeds = run(tmp_path, True, 111, 222)
    assert seeds == []
    assert not (tmp_path / "runs").exists()
    for name in SAME:
        first = ran / "results" / "sweeps" / found.name / name
        assert (found.page.parent / name).read_bytes() == first.read_bytes()
    page = (found.page.parent / "report.md").read_text()
    assert "4 trials were not run here but taken from the published ones" in page
    assert "4 published trials ran on: CPU of" in page
    published = pernn.lab.load_results(ran / "evidence", found.name)
    assert found.load().drop(columns="sweeps").equals(published.drop(columns="sweeps"))
    more, seeds = run(tmp_path, ran / "evidence", 111, 222, 333)
    assert seeds == [333, 333]
    assert json.loads((more.page.parent / "claims.json").read_text())["num_finished"] == 6
    page = (more.page.parent / "report.md").read_text()
    assert "2 trials ran on" in page
    assert "4 trials were not run here" in page


def test_what_a_wheel_brought_stays_beside_what_is_published_here(ran, tmp_path, monkeypatch):
    monkeypatch.delenv("PERNN_EVIDENCE", raising=False)
    monkeypatch.setattr("pernn.lab.store.published.SHIPPED", ran / "evidence")
    monkeypatch.chdir(tmp_path)
    assert len(pernn.lab.load_results("evidence")) == 4
    made, seeds = run(tmp_path / "results", True, 111, 333)
    assert seeds == [333, 333]
    publish(tmp_path / "results", load_sweep(tmp_path / "results", made.name), Path("evidence"))
    assert len(pernn.lab.load_results("evidence")) == 6
    _, seeds = run(tmp_path / "others", True, 111, 222, 333)
    assert seeds == []


def files_below(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_everything_is_rebuilt_byte_for_byte(ran, tmp_path, monkeypatch):
    monkeypatch.setenv("PERNN_PLANS", str(tmp_path))
    target = tmp_path / "pages"
    target.mkdir()
    (target / "report.md").write_text(f"By hand.\n\n{MARKS}The end.\n")
    pace = "<!-- factors --><!-- /factors --><!-- without --><!-- /without -->"
    (target / "pace.md").write_text(pace)
    of_sweep = "".join(f"<!-- {one} {NAME} --><!-- /{one} -->" for one in ("findings", "means"))
    (tmp_path / "README.md").write_text(MARKS + of_sweep)
    claim = {"number": "1", "text": "It helps", "expected": "supported"}
    claim["claims"] = [f"{NAME}: encoding_helps_lstm"]
    sections = [{"section": 1, "title": "One", "expectations": [claim]}]
    (target / "expectations.json").write_text(json.dumps(sections))
    written = []
    # Filled again, it stays as it is.
    for _ in range(2):
        rebuild(ran / "evidence", target, pytest.fail, [tmp_path / "README.md"])
        written.append(files_below(tmp_path))
    assert written[0] == written[1]
    there = files_below(ran / "results" / "sweeps" / NAME)
    for name in SAME:
        assert written[0][f"pages/{NAME}/{name}"] == there[name]
    pages = {name: page.decode() for name, page in written[0].items() if name.endswith("d")}
    report, readme = pages["pages/report.md"], pages["README.md"]
    assert report.startswith("By hand.")
    assert report.endswith("The end.\n")
    for said in (
        # Settings of its own: it counts in no total.
        "Apart, and in no total: checks of robustness, trends, and the demo.",
        f"]({NAME}/report.md) | 4 of 4 | 2 |",
        "| [vocabulary_size-demo · ",
        "| sorting |",  # its claims were not run
    ):
        assert said in report
    assert "1 rows: 1 not run." in pages["pages/predicted.md"]
    assert "pages/pace.svg" not in written[0]  # its sweep is not published there
    # Nothing is learnt in 4 updates.
    assert "<!-- without -->\n\n- vocabulary_size-demo · " in pages["pages/pace.md"]
    study = written[0]["pages/study.html"].decode()
    assert "The published ones took" in study
    assert "4 published trials ran on" in study
    assert f"](pages/{NAME}/report.md) | 4 of 4 | 2 |" in readme
    assert readme.count(f"](pages/{NAME}/report.md).\n\n<!-- /findings -->") == 1
    cell = pernn.lab.load_results(ran / "evidence", NAME).groupby("encoding.kind")["token_accuracy"]
    vanilla, encoded = (student_interval([*cell.get_group(k)]) for k in ("none", "sinusoidal"))
    assert f"| LSTM | 4 | {vanilla.shown} | {encoded.shown} | " in readme


def sweep_of(seeds, name=None):
    """Return a sweep of the miniature's trials, as its grid has them or under another name."""
    changes = {**TINY, "seed": seeds}
    specs = trials(find_experiment("vocabulary_size"), "demo", changes)
    own = name_sweep("vocabulary_size", "demo", changes)
    runs = [spec.fingerprint() for spec in specs]
    return Sweep(name or own, "vocabulary_size", "demo", {} if name else changes, runs)


@pytest.fixture
def two(ran, tmp_path):
    for seeds in ([111, 222], [111]):
        publish(ran / "results", sweep_of(seeds), tmp_path / "evidence")
    return tmp_path / "evidence"


def test_several_processes_draw_what_one_does(two, tmp_path, monkeypatch):
    rebuild(two, tmp_path / "one", pytest.fail)
    make_study(tmp_path / "none", tmp_path / "one.html", pytest.fail, two)
    monkeypatch.setattr("pernn.lab.reports.drawings.draw", None)  # nothing is drawn here any more
    rebuild(two, tmp_path / "two", pytest.fail, jobs=2)
    make_study(tmp_path / "none", tmp_path / "two.html", pytest.fail, two, jobs=3)
    assert len(files_below(tmp_path / "one")) > 10
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux")
def test_processes_that_draw_leave_with_a_killed_parent(two, tmp_path):
    words = ["report", "--all", "--jobs", "2", "-r", tmp_path, "--out", tmp_path / "page.html"]
    environment = {**os.environ, "PERNN_EVIDENCE": str(two)}
    parent = subprocess.Popen([sys.executable, "-m", "pernn", *words], env=environment)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    found: list[str] = []
    while len(found) < 3 and parent.poll() is None:  # one is multiprocessing's own
        found = children.read_text().split()
    parent.kill()
    parent.wait()
    assert len(found) == 3
    wait_until(lambda: not any(map(is_alive, found)))


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_trials_that_their_grid_lacks_are_left_out_and_said(ran, tmp_path):
    sweep = sweep_of([111, 222], "vocabulary_size-demo")
    publish(ran / "results", sweep, tmp_path / "evidence")
    said: list[str] = []
    rebuild(tmp_path / "evidence", tmp_path / "pages", said.append)
    assert len(said) == 1
    assert "4 trials are not in the grid of vocabulary_size-demo any more" in said[0]
    with pytest.raises(ConfigError, match="no published trials"):
        rebuild(tmp_path, tmp_path / "pages", said.append)


def test_the_verbs(ran, tmp_path):
    published = {"PERNN_EVIDENCE": "evidence", "cwd": tmp_path}
    done = call("publish", NAME, "-r", ran / "results", "--to", "evidence", **published)
    assert (done.returncode, done.stdout) == (0, f"evidence/{NAME}.parquet: 4 published\n")
    again = call("publish", NAME, "-r", ran / "results", "--json", **published)
    assert set(json.loads(again.stdout)[NAME]["trials"].values()) == {"identical"}
    settings = {**TINY, "seed": "[111, 222]"}
    sets = [word for setting in settings.items() for word in ("--set", "=".join(map(str, setting)))]
    words = ["vocabulary_size", *sets]
    planned = call("publish", *words, "-r", ran / "results", **published)
    assert planned.stdout == f"evidence/{NAME}.parquet: 4 identical\n"
    both = call("publish", NAME, "--set", "seed=1", "-r", ran / "results", **published)
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
    words = ["run", *words, "--runner", "inline", "--device", "cpu"]
    done = succeed(*words, **published)
    assert "4 of 4 trials are published and count as finished" in done.stdout
    assert not (tmp_path / "results" / "runs").exists()
    judged = call("report", NAME, "--claims", "--ignore-published", "--json", **published)
    assert {one["verdict"] for one in json.loads(judged.stdout)} == {"not run"}
    summary = json.loads(call("report", NAME, "--json", **published).stdout)
    assert (summary["num_finished"], summary["num_published"]) == (4, 4)
    done = call(*words, "--ignore-published", "--max-trials", "1", **published)
    assert (done.returncode, len(list((tmp_path / "results" / "runs").iterdir()))) == (5, 1)


def test_published_trials_count_wherever_a_sweep_is_read(ran, tmp_path):
    """One seed ran here, the other is published only."""
    run(tmp_path / "here", None, 111)
    sweep = load_sweep(ran / "results", NAME)
    save_sweep(tmp_path / "here", sweep)
    there = {"cwd": tmp_path, "PERNN_EVIDENCE": str(ran / "evidence")}

    def status(*words):
        done = call("status", "-r", "here", "--json", *words, **there)
        return json.loads(done.stdout)[NAME]

    assert status() == {"finished": 4}
    assert status("--ignore-published") == {"finished": 2, "waiting": 2}
    for more, said in (("", "4 of 4"), ("--ignore-published", "2 of 4")):
        words = ["export", NAME, "-r", "here", "-o", "records.csv", *filter(None, [more])]
        assert call(*words, **there).stdout.startswith(f"{said} trials")
    words = ["export", NAME, "-r", "here", "--curves", "-o", "curves.json"]
    assert call(*words, **there).returncode == 0
    curves = json.loads((tmp_path / "curves.json").read_text())
    assert {row["run"] for row in curves} == {*sweep.runs}
    page = tmp_path / "study.html"
    assert make_study(tmp_path / "here", page, pytest.fail, ran / "evidence") == 2
    assert make_study(tmp_path / "nowhere", page, pytest.fail, ran / "evidence") == 1
    assert "4 trials were not run here but taken from the published" in page.read_text()


def test_of_many_sweeps_those_are_shown_that_judge_claims(ran, tmp_path, monkeypatch):
    sweep = load_sweep(ran / "results", NAME)
    for name, scale in (("first", "demo"), ("second", "small")):
        for own, changes in (("", {}), ("_own", {"core.kind": "gru"})):
            about = {"name": name + own, "scale": scale, "overrides": {"seed": [111], **changes}}
            save_sweep(tmp_path, replace(sweep, **about))
    shown: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(
        "pernn.lab.evidence.write_study",
        lambda reports, path, further: shown.append(([one.name for one in reports], further)),
    )
    make_study(tmp_path, tmp_path / "study.html", pytest.fail)
    monkeypatch.setattr("pernn.lab.evidence.MOST_SHOWN", 3)
    make_study(tmp_path, tmp_path / "study.html", pytest.fail)
    # Published ones give way to those of one's own.
    monkeypatch.setattr("pernn.lab.evidence.MOST_SHOWN", 4)
    make_study(tmp_path, tmp_path / "study.html", pytest.fail, ran / "evidence")
    every = ["first", "first_own", "second", "second_own"]
    of_few = dict.fromkeys(["first", "first_own", "second_own"], "vocabulary_size")
    assert shown == [(every, {}), (["second"], of_few), (every, {NAME: "vocabulary_size"})]


def test_a_sweep_whose_report_cannot_be_made_does_not_stop_the_others(ran, tmp_path, monkeypatch):
    for name in ("odd", "plain"):
        save_sweep(tmp_path, replace(load_sweep(ran / "results", NAME), name=name))

    def refuse(name, value=None):
        if name == "odd":
            raise ConfigError("two trials at seed = 1")
        return value

    monkeypatch.setattr(Report, "rows", property(lambda report: refuse(report.name, [])))
    said: list[str] = []
    assert make_study(tmp_path, tmp_path / "study.html", said.append) == 1
    assert said == ["sweep odd: two trials at seed = 1"]
    names = iter(["odd", "plain", "odd"])
    monkeypatch.setattr("pernn.lab.cli.run.carry_out", lambda *_, **__: refuse(next(names), 0))
    assert resume(None, tmp_path, launch=Launch()) == exit_status(StoreError)
    with pytest.raises(ConfigError, match="two trials"):
        resume("odd", tmp_path, launch=Launch())


def test_a_damaged_publication_does_not_count_and_is_said(ran, tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.parquet").write_bytes(b"none")
    said: list[str] = []
    monkeypatch.setattr(
        "pernn.lab.evidence.write_study", lambda reports, path, further: len(reports)
    )
    assert make_study(ran / "results", tmp_path / "study.html", said.append, tmp_path) == 1
    assert len(said) == 1
    done = call("status", "-r", ran / "results", "--json", PERNN_EVIDENCE=str(tmp_path))
    assert "published trials do not count" in done.stderr
    assert json.loads(done.stdout)[NAME] == {"finished": 4}


def test_trials_are_rows_and_curves_have_what_differs_between_them(ran):
    frame = pernn.lab.load_results(ran / "results", NAME)
    assert len(frame) == 4
    assert set(frame["encoding.kind"]) == {"none", "sinusoidal"}
    assert frame["sweeps"].tolist() == [NAME] * 4
    assert (frame["embedding_size"] == 8).all()
    assert frame["token_accuracy"].between(0, 1).all()
    for level in (0.5, 0.8, 0.9, 0.95):
        assert frame[f"updates_to_{level}"].between(2, 4).all()
        assert frame[f"updates_to_{level}_censored"].dtype == bool
    every = pernn.lab.load_results(ran / "results")
    assert every.equals(frame.sort_values("run", ignore_index=True)[every.columns])
    rows = pernn.lab.load_results(ran / "results", NAME, table="by_update")
    assert sorted(rows["update"]) == [2] * 4 + [4] * 4
    with pytest.raises(ConfigError, match="no finished trial has a table 'by_updat'"):
        pernn.lab.load_results(ran / "results", NAME, table="by_updat")
    with pytest.raises(ConfigError, match=f"no sweep 'other' .*there: {NAME}"):
        pernn.lab.load_results(ran / "results", "other")
    frame = pernn.lab.load_curves(ran / "results", NAME)
    runs = load_sweep(ran / "results", NAME).runs
    logs = {run: RunDirectory(ran / "results", run).read_metrics() for run in runs}
    # The last test is in no log.
    for run, log in logs.items():
        tests = RunDirectory(ran / "results", run).read_result()["tables"]["by_update"]
        assert [line["update"] for line in log if line["kind"] == "test"] == tests["update"][:-1]
        last = {key: column[-1] for key, column in tests.items()}
        log.append({"kind": "test", **last})
    lines = [{"run": run, **line} for run, log in logs.items() for line in log]
    expected = pd.DataFrame(lines)
    assert frame[expected.columns].equals(expected)
    of_run = pernn.lab.load_results(ran / "results", NAME).set_index("run")
    for column in ("encoding.kind", "seed"):
        assert frame[column].tolist() == of_run[column][frame["run"]].tolist()
    assert "task.length" not in frame.columns
    for load in (pernn.lab.load_results, pernn.lab.load_curves):
        with pytest.raises(ConfigError, match="nowhere is not a directory"):
            load(ran / "nowhere")


def test_published_trials_are_loaded_alike(ran):
    order = {"by": "run", "kind": "stable", "ignore_index": True}
    for table in (None, "by_update"):
        found, own = (
            pernn.lab.load_results(ran / place, NAME, table=table).sort_values(**order)
            for place in ("evidence", "results")
        )
        assert found.equals(own[found.columns])
        assert len(pernn.lab.load_results(ran / "evidence", table=table)) == len(found)
    curves = pernn.lab.load_curves(ran / "evidence")
    assert set(curves["kind"]) == {"train", "test"}
    assert set(curves["encoding.kind"]) == {"none", "sinusoidal"}
    with pytest.raises(ConfigError, match=f"has no sweep 'other' .published: {NAME}"):
        pernn.lab.load_results(ran / "evidence", "other")


def test_a_trained_network_is_loaded(ran):
    directory = RunDirectory(ran / "results", load_sweep(ran / "results", NAME).runs[0])
    model = pernn.lab.load_model(directory.path)
    weights = {f"model.{key}": value.numpy() for key, value in model.state_dict().items()}
    assert weights_digest(weights) == directory.read_result()["weights_sha256"]
    earlier = pernn.lab.load_model(directory.path, update=2)
    assert not torch.equal(earlier.output_layer.weight, model.output_layer.weight)
    with pytest.raises(ConfigError, match=r"no checkpoint of update 3: expected one of \[2, 4"):
        pernn.lab.load_model(directory.path, update=3)
    with pytest.raises(ConfigError, match="is not a run directory"):
        pernn.lab.load_model(ran / "results")


def test_by_default_there_are_as_many_processes_as_cores_are_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 5, 7}, raising=False)

    def leave(plan, root, runner, **how):
        raise KeyboardInterrupt(runner.jobs)

    monkeypatch.setattr("pernn.lab.sweeps.run_sweep", leave)
    with pytest.raises(KeyboardInterrupt, match="3"):
        pernn.lab.run("vocabulary_size", results=tmp_path)


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.default_int_handler])
def test_a_process_that_draws_ends_by_interrupts_unless_they_are_ignored(before):
    handler = signal.signal(signal.SIGINT, before)
    try:
        evidence._leave_with_parent()
        ends = signal.SIG_IGN if before is signal.SIG_IGN else signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is ends
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_killed_process_that_draws_is_said(two, tmp_path):
    def kill():
        # Both are there: a pool of Python 3.11 that breaks as it starts another never ends.
        wait_until(lambda: len(active_children()) == 2)
        active_children()[0].kill()

    killer = Thread(target=kill)
    killer.start()
    with pytest.raises(MachineError, match="try --jobs 1"):
        rebuild(two, tmp_path / "pages", pytest.fail, jobs=2)
    killer.join()
