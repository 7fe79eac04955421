"""docs/run_directory.md against what is really written, both ways: nothing more, nothing less."""

import json
import re
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from docs.test_readme import blocks
from pernn.errors import TrialError
from pernn.lab import runs
from pernn.lab.experiments import find_experiment
from pernn.lab.interfaces import Predictions
from pernn.lab.reports import Report
from pernn.lab.runners.worker import LOG
from pernn.lab.runs import execute
from pernn.lab.store import FORMAT, RunDirectory, Sweep, request_pause, save_sweep
from pernn.lab.trials import gather
from tiny import tiny

PAGE = (Path(__file__).parents[2] / "docs" / "run_directory.md").read_text(encoding="utf-8")
SPEC = tiny("reverse_ordering", "gru", training={"evaluation_interval": 4})
LOST = SPEC.override({"seed": 222})


def diverge(*arguments):
    raise TrialError("the loss became nan")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A directory in which everything that can happen to a run has happened."""
    root = tmp_path_factory.mktemp("results")
    run = RunDirectory(root, SPEC.fingerprint())
    execute(SPEC, root, device="cpu", on_update=lambda update: update != 9)
    (run.path / "checkpoints" / "update-000000009" / "manifest.json").write_text("{}")
    environment = run.read_environment()
    run.write_environment({**environment, "processor": "another"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs.execution, "advance", diverge)
        with pytest.warns(UserWarning, match="diverged after update 0"):
            execute(LOST, root, device="cpu")
    with pytest.warns(UserWarning, match="damaged checkpoint set aside"):
        execute(SPEC, root, device="cpu", on_update=lambda update: False)
    run.note_failure("no space left", "StoreError")
    (run.path / "metrics.jsonl").unlink()
    with pytest.warns(UserWarning, match="metrics restored from the newest checkpoint"):
        assert execute(SPEC, root, device="cpu").state == "finished"
    sweep = Sweep("vocabulary_size-test", "vocabulary_size", "demo", {}, [SPEC.fingerprint()])
    folder = save_sweep(root, sweep)
    experiment = find_experiment("vocabulary_size")
    over_time = replace(experiment.figure, x="update", x_base=None, table="by_update")
    experiment = replace(experiment, more_figures={"over_time": over_time})
    records = [one.row() for one in gather(root, sweep.runs)]
    Report(experiment, "demo", records, [SPEC], "pernn run").write(folder)
    request_pause(root, sweep.name)
    (root / LOG).touch()  # by the runner of processes, which is not needed here
    return root


def general(name):
    name = re.sub(r"update-\d{9}", "update-<n>", name)
    name = re.sub(r"lease-\d{6}", "lease-<term>", name)
    name = re.sub(r"runs/[0-9a-f]{16}", "runs/<run>", name)
    name = name.replace("sweeps/vocabulary_size-test", "sweeps/<sweep>")
    return name.replace("over_time.", "<name>.")


def drawn_tree():
    (tree,) = blocks("text", PAGE)
    parents, paths = [], set()
    for line in tree.splitlines()[1:]:
        name = re.sub(r"^[│├└─ ]+", "", line)
        depth = (len(line) - len(name)) // 4 - 1
        name, phrase = re.split(r"\s{2,}", name, maxsplit=1) if "  " in name else (name, "folder")
        assert phrase
        parents[depth:] = [name]
        paths.add("".join(parents))
    return paths


def test_the_tree_and_every_field_are_what_is_written(results):
    paths = results.rglob("*")
    found = {general(str(path.relative_to(results))) + "/" * path.is_dir() for path in paths}
    damaged = "runs/<run>/checkpoints/damaged-update-<n>/"
    found = {path for path in found if not path.startswith(damaged)} | (found & {damaged})
    assert found == drawn_tree()
    found = written(results)
    assert found == {name: documented(name) for name in found}
    sections = set(re.findall(r"^### `([^`]+)`", PAGE, flags=re.MULTILINE))
    assert sections == set(found)


def documented(name):
    (section,) = re.findall(
        rf"^### `{re.escape(name)}`\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    # What only some tasks or devices have is not written by this page's run.
    rows = r"^\| `([^`]+)` \| (?!of a task |of a run on a GPU)"
    return set(re.findall(rows, section, flags=re.MULTILINE))


def written(root):
    """File name → top-level keys of all files of that name."""
    keys = defaultdict(set)
    known = re.compile(r"(model|optimizer\.(?:exp_avg|exp_avg_sq|step))\..+")
    for path in root.rglob("*"):
        if "damaged-" in str(path):
            continue
        if path.suffix in (".json", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            for one in [text] if path.suffix == ".json" else text.splitlines():
                keys[general(path.name)] |= json.loads(one).keys()
        elif path.suffix == ".safetensors":
            keys[path.name] |= {known.sub(r"\1.*", tensor) for tensor in load_file(path)}
    return keys


def test_the_events_are_those_of_the_page(results):
    runs_ = (RunDirectory(results, spec.fingerprint()) for spec in (SPEC, LOST))
    journal = [line for run in runs_ for line in run.read_journal()]
    (row,) = re.findall(r"^\| `event` \|(.*)\|$", PAGE, flags=re.MULTILINE)
    assert {line["event"] for line in journal} == set(re.findall(r"`([^`]+)`", row))
    reason = {"reason"}
    special = {"started": set(), "stopped": {"seconds"}, "resumed": {"changed"}, "diverged": reason,
               "finished": {"updates", "seconds"}, "failed": {"reason", "error"},
               "damaged checkpoint set aside": reason, "metrics restored": reason}  # fmt: skip
    for line in journal:
        usual = {"time", "event", "process", "update"}
        assert line.keys() - usual <= special[line["event"]]


def test_kinds_of_lines_and_claims_have_the_fields_that_the_page_says(results):
    lines = RunDirectory(results, SPEC.fingerprint()).read_metrics()
    table = re.findall(r"^\| `(\w+)` \| `(train|test)` only:", PAGE, flags=re.MULTILINE)
    common = {"update", "kind", "loss", "token_accuracy"}
    for kind in ("train", "test"):
        expected = common | {name for name, only in table if only == kind}
        assert {frozenset(line) for line in lines if line["kind"] == kind} == {frozenset(expected)}
    result = RunDirectory(results, SPEC.fingerprint()).read_result()
    assert {"update", "kind", *result["metrics"]} == common | {n for n, o in table if o == "test"}
    claims = json.loads((results / "sweeps/vocabulary_size-test/claims.json").read_text())["claims"]
    (row,) = re.findall(r"^\| `claims` \| one object per claim:(.*)\|$", PAGE, flags=re.MULTILINE)
    assert {tuple(claim) for claim in claims} == {tuple(re.findall(r"`([^`]+)`", row))}
    assert f"`sweep.json` is {FORMAT}. It rises" in PAGE


def test_the_pages_python_runs(results, tmp_path, monkeypatch, capsys):
    shutil.copytree(results, tmp_path / "results")
    shutil.rmtree(tmp_path / "results" / "runs" / LOST.fingerprint())  # it has no checkpoint
    monkeypatch.chdir(tmp_path)
    examples = blocks("python", PAGE)
    assert len(examples) == 2
    for block in examples:
        exec(block, {})  # noqa: S102
    printed = capsys.readouterr().out
    assert "vocabulary_size-test ['finished']" in printed
    assert f"{SPEC.fingerprint()} gru 111 0." in printed


def documented_tables():
    (section,) = re.findall(r"^### Tables\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (.*) \|$", section, re.MULTILINE)
    return {(name, task): text for name, task, text in rows}


def measured(task):
    """What is measured of a small task when its network is right by luck."""
    stream = tiny(task).build_task().stream(1)
    test = stream.test()
    return stream.measure(Predictions(test.targets, np.zeros(test.targets.shape[:2])))


@pytest.mark.parametrize("task", ["variable_length", "dual_frequency", "copying_memory", "sorting"])
def test_tables_and_metrics_of_tasks_are_documented(task):
    found, said = measured(task), documented_tables()
    assert found.tables.keys() == {name for name, of in said if of == task.replace("_", " ")}
    for name, table in found.tables.items():
        text = said[name, task.replace("_", " ")]
        before = said["by_condition", "dual frequency"] if "as above" in text else ""
        columns = set(re.findall(r"`(\w+)`", text + before)) - {"Frequent", "Rare"}
        assert set(table) == columns
    everything = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert found.metrics.keys() <= documented("metrics.jsonl") | everything
