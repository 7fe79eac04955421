"""Finished trials as one table, and their curves as another, whatever is damaged of them."""

import json
import random

import pytest
from pyarrow import parquet

from pernn.errors import CorruptError
from pernn.lab.reports import export_curves
from pernn.lab.trials import Trial, beside, describe, gather, lines_of, records_of, settings_of
from store.finished import logged, spec

UPDATES = range(10, 2010, 10)


def trial(root, seed):
    lines = [
        {"update": update, "kind": kind, "loss": 1 / update, "token_accuracy": 0.5}
        for update in UPDATES
        for kind in (["train", "test"] if update % 100 == 0 else ["train"])
    ]
    run = logged(root, spec(seed), random.Random(seed), lines)
    tests = [one for one in lines if one["kind"] == "test"]
    table = {key: [one[key] for one in tests] for key in ("update", "loss", "token_accuracy")}
    run.write_result({**run.read_result(), "tables": {"by_update": table}})
    return run.fingerprint


def test_curves_are_thinned_evenly_with_both_ends_however_long_the_log(tmp_path, monkeypatch):
    found = gather(tmp_path, [trial(tmp_path, seed) for seed in (1, 2)])
    assert len(lines_of(found)) == 2 * 220
    frame = beside(lines_of(found, 10), settings_of(found))
    assert len(frame) == 2 * 20
    own = frame[(frame["seed"] == 1) & (frame["kind"] == "train")]
    assert (own["update"].min(), own["update"].max()) == (10, 2000)
    assert own["loss"].tolist() == [float(f"{1 / update:.6g}") for update in own["update"]]
    assert own["core.hidden_size"].tolist() == [8] * 10
    found = gather(tmp_path, [trial(tmp_path, 1)])
    short = [lines_of(found), lines_of(found, 10)]
    monkeypatch.setattr("pernn.lab.trials.CHUNK", 7)
    for one, other in zip(short, [lines_of(found), lines_of(found, 10)], strict=True):
        assert one.equals(other)


@pytest.mark.parametrize("name", ["environment.json", "metrics.jsonl"])
def test_what_is_damaged_beside_a_result_is_named_and_unknown(tmp_path, name):
    runs = [trial(tmp_path, seed) for seed in (1, 2)]
    (tmp_path / "runs" / runs[0] / name).write_text("{\n")
    said: list[str] = []
    found = gather(tmp_path, runs, on_warning=said.append)
    assert [one.run for one in found] == runs
    assert len(said) == 1
    assert name in said[0]
    known = runs if name == "environment.json" else runs[1:]
    machine = "CPU of one, 2 threads, torch None, Python None"
    assert describe(found) == [f"{3 - len(known)} trials ran on: {machine}."]
    assert {*lines_of(found)["run"]} == {*known}
    with pytest.raises(CorruptError, match=name):
        gather(tmp_path, runs)


def test_what_is_finished_here_comes_before_what_is_published(tmp_path):
    runs = [trial(tmp_path, seed) for seed in (1, 2)]
    other = Trial("f" * 16, {"seed": 9}, {"metrics": {"loss": 0.5}}, {}, {})
    published = {runs[1]: other, other.run: other}
    found = gather(tmp_path, [*runs, other.run], published)
    assert [one.run for one in found] == [*runs, other.run]
    assert [one.root for one in found] == [tmp_path, tmp_path, None]


def test_curves_are_exported_in_parts_as_they_are_whole(tmp_path, monkeypatch):
    found = gather(tmp_path, [trial(tmp_path, seed) for seed in (1, 2)])
    expected = beside(lines_of(found), settings_of(found))
    monkeypatch.setattr("pernn.lab.reports.tables.NUM_ROWS", 77)
    for form in ("csv", "json", "parquet"):
        assert export_curves(found, tmp_path / f"curves.{form}") == len(expected)
    assert (tmp_path / "curves.csv").read_text() == expected.to_csv(index=False)
    text = json.dumps(records_of(expected), indent=1)
    assert (tmp_path / "curves.json").read_text() == f"{text}\n"
    rows = parquet.read_table(tmp_path / "curves.parquet").to_pylist()
    assert [{k: v for k, v in row.items() if v is not None} for row in rows] == [
        {k: v for k, v in row.items() if v is not None} for row in records_of(expected)
    ]
    for form in ("csv", "json", "parquet"):
        assert export_curves([], tmp_path / f"none.{form}") == 0
    assert (tmp_path / "none.json").read_text() == "[]\n"


def test_a_whole_number_that_some_trials_lack_stays_whole(tmp_path):
    specs = {"a": {"seed": 1, "encoding": {"size": 8}}, "b": {"seed": 2}}
    curve = {"update": [1], "loss": [0.5]}
    found = [Trial(run, spec, {"metrics": {}}, {}, curve) for run, spec in specs.items()]
    assert export_curves(found, tmp_path / "curves.csv") == 2
    assert (tmp_path / "curves.csv").read_text() == (
        "run,seed,encoding.size,kind,update,loss\na,1,8,train,1,0.5\nb,2,,train,1,0.5\n"
    )
