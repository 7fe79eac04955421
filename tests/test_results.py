"""A study in a notebook: a sweep run, its trials and curves as frames, its networks loaded."""

import pandas as pd
import pytest
import torch

import pernn.lab
from pernn.errors import ConfigError
from pernn.lab.runners import InlineRunner
from pernn.lab.runs import weights_digest
from pernn.lab.store import RunDirectory, load_sweep
from pernn.lab.trials import publish
from tiny import TINY

ONE_SEED = {**TINY, "seed": 111}


@pytest.fixture(scope="module")
def ran(tmp_path_factory, one_format):
    root, ends = tmp_path_factory.mktemp("results"), []
    runner = InlineRunner(device="cpu")
    found = pernn.lab.run(
        "vocabulary_size",
        overrides=ONE_SEED,
        results=root,
        runner=runner,
        on_event=lambda event: ends.append(event.state),
    )
    assert ends.count("finished") == 2
    again = pernn.lab.run("vocabulary_size", overrides=ONE_SEED, results=str(root), runner=runner)
    assert (again.name, again.page, again.failures) == (found.name, found.page, [])
    return found


def test_a_sweep_is_run_and_reported(ran):
    assert ran.name.startswith("vocabulary_size-demo-")
    assert ran.page.is_file()
    assert {verdict.verdict for verdict in ran.verdicts} == {"not run", "too few seeds"}


def test_trials_are_rows(ran):
    frame = ran.load()
    assert len(frame) == 2
    assert set(frame["encoding.kind"]) == {"none", "sinusoidal"}
    assert frame["sweeps"].tolist() == [ran.name] * 2
    assert (frame["embedding_size"] == 8).all()
    assert frame["token_accuracy"].between(0, 1).all()
    for level in (0.5, 0.8, 0.9, 0.95):
        assert frame[f"updates_to_{level}"].between(2, 4).all()
        assert frame[f"updates_to_{level}_censored"].dtype == bool
    every = pernn.lab.load_results(ran.results)
    assert every.equals(frame.sort_values("run", ignore_index=True)[every.columns])
    rows = ran.load("by_update")
    assert sorted(rows["update"]) == [2, 2, 4, 4]
    with pytest.raises(ConfigError, match="no finished trial has a table 'by_updat'"):
        ran.load("by_updat")
    with pytest.raises(ConfigError, match="no sweep 'other'"):
        pernn.lab.load_results(ran.results, "other")


def test_curves_have_what_differs_between_trials(ran):
    frame = pernn.lab.load_curves(ran.results, ran.name)
    lines = [
        {"run": run, **line}
        for run in load_sweep(ran.results, ran.name).runs
        for line in RunDirectory(ran.results, run).read_metrics()
    ]
    expected = pd.DataFrame(lines)
    assert frame[expected.columns].equals(expected)
    kinds = dict(zip(ran.load()["run"], ran.load()["encoding.kind"], strict=True))
    assert frame["encoding.kind"].tolist() == [kinds[run] for run in frame["run"]]
    assert {"run", "encoding.kind", "update", "kind", "loss"} <= set(frame.columns)
    assert "task.length" not in frame.columns
    train = frame[frame["kind"] == "train"]
    assert train.groupby("encoding.kind")["update"].apply(list).tolist() == [[2, 4], [2, 4]]


def test_published_trials_are_loaded_alike(ran, tmp_path):
    sweep = load_sweep(ran.results, ran.name)
    publish(ran.results, sweep, tmp_path)
    for table in (None, "by_update"):
        found = pernn.lab.load_results(tmp_path, ran.name, table=table)
        own = ran.load(table).sort_values("run", kind="stable", ignore_index=True)
        assert found.sort_values("run", kind="stable", ignore_index=True).equals(own[found.columns])
        assert len(pernn.lab.load_results(tmp_path, table=table)) == len(found)
    curves = pernn.lab.load_curves(tmp_path)
    assert set(curves["kind"]) == {"train", "test"}
    assert set(curves["encoding.kind"]) == {"none", "sinusoidal"}
    with pytest.raises(ConfigError, match=f"has no sweep 'other' .published: {ran.name}"):
        pernn.lab.load_results(tmp_path, "other")


def test_a_trained_network_is_loaded(ran):
    for run in ran.load()["run"]:
        directory = RunDirectory(ran.results, run)
        model = pernn.lab.load_model(directory.path)
        weights = {f"model.{key}": value.numpy() for key, value in model.state_dict().items()}
        assert weights_digest(weights) == directory.read_result()["weights_sha256"]
        earlier = pernn.lab.load_model(directory.path, update=2)
        assert not torch.equal(earlier.output_layer.weight, model.output_layer.weight)
        with pytest.raises(ConfigError, match=r"no checkpoint of update 3: expected one of \[2, 4"):
            pernn.lab.load_model(directory.path, update=3)
    with pytest.raises(ConfigError, match="is not a run directory"):
        pernn.lab.load_model(ran.results)


def test_by_default_there_are_as_many_processes_as_cores_are_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 5, 7}, raising=False)

    def leave(plan, root, runner, **how):
        raise KeyboardInterrupt(runner.jobs)

    monkeypatch.setattr("pernn.lab.sweeps.run_sweep", leave)
    with pytest.raises(KeyboardInterrupt, match="3"):
        pernn.lab.run("vocabulary_size", results=tmp_path)


def test_a_misspelt_directory_is_no_empty_frame(tmp_path):
    for load in (pernn.lab.load_results, pernn.lab.load_curves):
        with pytest.raises(ConfigError, match="nowhere is not a directory"):
            load(tmp_path / "nowhere")
