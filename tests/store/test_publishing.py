"""Published trials: what is in a record, what is refused, and how publications are merged."""

import json
import pickle
import random
import shutil
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

from command_line import python
from pernn.errors import CorruptError, VersionError
from pernn.lab.store import Sweep, describe_publication, save_sweep
from pernn.lab.store.published import from_table, open_parquet, read_table, to_parquet
from pernn.lab.trials import MAX_POINTS, find_published, gather, publish, read_published
from store.finished import Trap, begin, logged, spec

pytest.importorskip("pyarrow")
SEEDS = range(3)


def sweep_of(root, seeds=SEEDS):
    runs = [spec(seed).fingerprint() for seed in seeds]
    found = Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs)
    save_sweep(root, found)
    return found


def results(root, *, noise=0, machine="one", seeds=SEEDS):
    lines = [{"update": n, "kind": "train", "loss": 1 / 3 + n} for n in range(1, 201)]
    for seed in seeds:
        logged(root, spec(seed), random.Random(seed + noise), lines, machine=machine)
    begin(root, spec(99))
    return sweep_of(root, [*seeds, 99])


@pytest.fixture
def published(tmp_path):
    publish(tmp_path / "r", results(tmp_path / "r"), tmp_path / "evidence")
    return tmp_path / "evidence"


def test_records_are_those_of_the_results_directory(tmp_path, published):
    found = {one.run: one.row() for one in read_published(published)}
    runs = [spec(seed).fingerprint() for seed in SEEDS]
    assert list(found) == sorted(runs)
    assert [found[run] for run in runs] == [one.row() for one in gather(tmp_path / "r", runs)]
    assert [one.run for one in read_published(published, [runs[1], "0" * 16])] == [runs[1]]
    one = read_published(published, runs[:1])[0]
    assert one.environment["processor"] == "one"
    updates = one.curves["update"]
    assert len(updates) <= MAX_POINTS
    assert len({after - before for before, after in pairwise(updates[1:])}) == 1
    assert (one.curves["update"][-1], one.curves["loss"][0]) == (200, 1.33333)
    assert one.core_seconds.keys() == {runs[0]}


def test_reading_starts_no_thread_that_could_abort_the_end_of_a_process(published):
    code = """
import os, pathlib, sys
from pernn.lab.store import load_pyarrow
from pernn.lab.trials import read_published
load_pyarrow()
before = os.listdir("/proc/self/task")
found = read_published(pathlib.Path(sys.argv[1]))
assert os.listdir("/proc/self/task") == before
print(len(found))
"""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("no list of threads")
    done = python("-c", code, published)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_again_changes_nothing_and_of_two_machines_the_first_stays(tmp_path, published):
    (file,) = published.iterdir()
    before = file.read_bytes()
    root = tmp_path / "r"
    fates = publish(root, sweep_of(root), published).fates
    assert (set(fates.values()), file.read_bytes()) == ({"identical"}, before)
    late = tmp_path / "late"
    for seeds in ([2], [1, 0]):
        publish(root, sweep_of(root, seeds), late)
    assert (late / file.name).read_bytes() == before
    other = tmp_path / "other"
    sweep = results(other, noise=1, machine="two", seeds=(2, 3))
    made = publish(other, sweep, published)
    assert list(made.fates.values()) == ["kept the first", "published"]
    machines = {one.spec["seed"]: one.environment["processor"] for one in read_published(published)}
    assert machines == {0: "one", 1: "one", 2: "one", 3: "two"}


def test_a_run_has_one_published_result_whichever_sweeps_share_it(tmp_path, published):
    first, root = read_published(published), tmp_path / "two"
    shared = results(root, noise=1, machine="two", seeds=(2, 3))
    other = Sweep("a-demo", "vocabulary_size", "demo", {"seed": [2, 3]}, shared.runs)
    made = publish(root, other, published)
    assert list(made.fates.values()) == ["kept the first", "published"]
    assert [one for one in read_published(published) if one.spec["seed"] < 3] == first
    # What is the same may lie in both files.
    again = Sweep("b-demo", "vocabulary_size", "demo", {"seed": [0]}, sweep_of(root, [0]).runs)
    assert {*publish(tmp_path / "r", again, published).fates.values()} == {"published"}


def test_of_one_trial_in_two_files_that_of_the_first_by_name_counts(tmp_path, published):
    publish(tmp_path / "two", results(tmp_path / "two", noise=1, machine="two"), tmp_path / "other")
    (other,) = (tmp_path / "other").iterdir()
    for name, machine in (("z-demo", "one"), ("a-demo", "two")):
        shutil.copy(other, published / f"{name}{other.suffix}")
        found = read_published(published)
        assert [one.environment["processor"] for one in found] == [machine] * len(SEEDS)


@pytest.mark.parametrize(
    ("end", "told", "expected"),
    [
        ("12:01", {}, 120.0),
        ("12:01", {"seconds": 50.5}, 101.0),
        ("11:00", {}, 0.0),
        ("11:00", {"seconds": 50.5}, 101.0),
    ],
)
def test_core_seconds_do_not_follow_a_clock_that_is_set(tmp_path, end, told, expected):
    run, _ = results(tmp_path / "r", seeds=(0,)).runs
    lines = (
        {"event": "started", "time": "2026-11-28T12:00:00+00:00"},
        {"event": "finished", "time": f"2026-11-28T{end}:00+00:00", **told},
    )
    path = tmp_path / "r" / "runs" / run / "journal.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    publish(tmp_path / "r", sweep_of(tmp_path / "r", [0]), tmp_path / "evidence")
    assert read_published(tmp_path / "evidence")[0].core_seconds == {run: expected}


def rewrite(folder, change, **about):
    from pyarrow import parquet

    (file,) = folder.iterdir()
    table = change(parquet.read_table(file))
    described = json.loads(table.schema.metadata[b"pernn"]) | about
    table = table.replace_schema_metadata({b"pernn": json.dumps(described)})
    parquet.write_table(table, file)


def replaced(column, value):
    def change(table):
        import pyarrow as pa

        values = [value, *table.column(column).to_pylist()[1:]]
        return table.set_column(table.column_names.index(column), column, pa.array(values))

    return change


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seed", 7),
        ("seed", 0.5),
        ("token_accuracy", 0.9999),
        ("environment.threads", 64),
        ("curves.loss", [0.0]),
        ("core_seconds.seconds", [1.0, 2.0]),
        ("rest", "{}"),
        ("rest", '{"spec": 5}'),
        ("rest", None),
        ("checksum", "0" * 64),
        ("run", "0" * 16),
    ],
)
def test_an_edited_record_is_refused(published, column, value):
    rewrite(published, replaced(column, value))
    with pytest.raises(CorruptError, match="not a file of published trials"):
        read_published(published)


def test_a_spec_of_another_run_is_refused_whatever_its_checksum(published):
    (file,) = published.iterdir()
    opened, about = open_parquet(file.read_bytes())
    trials = from_table(read_table(opened), about.pop("columns"))
    trials[0]["spec"]["seed"] = 7
    file.write_bytes(to_parquet(trials, about))
    with pytest.raises(CorruptError, match="the spec is that of another run"):
        read_published(published)


def test_a_trial_that_stands_twice_is_refused(published):
    rewrite(published, lambda table: table.take([0, 1, 2, 0]))
    for read in (read_published, lambda folder: describe_publication(next(folder.iterdir()))):
        with pytest.raises(CorruptError, match="twice"):
            read(published)


@pytest.mark.parametrize(
    "about",
    [{"overrides": [1]}, {"overrides": 5}, {"experiment": []}, {"scale": None}, {"columns": 5}],
)
def test_a_description_of_wrong_types_is_refused(published, about):
    rewrite(published, lambda table: table, **about)
    with pytest.raises(CorruptError, match="not a file of published trials"):
        read_published(published)


def test_files_of_other_sweeps_and_newer_ones_are_refused(tmp_path, published):
    other = Sweep("vocabulary_size-demo", "sorting", "demo", {}, [])
    with pytest.raises(CorruptError, match="holds vocabulary_size demo"):
        publish(tmp_path / "r", other, published)
    rewrite(published, lambda table: table, format=3)
    with pytest.raises(VersionError, match="newer pernn"):
        read_published(published)


def test_a_small_file_that_would_fill_the_memory_is_refused(published):
    import pyarrow as pa
    from pyarrow import parquet

    rewrite(published, lambda table: pa.concat_tables([table.select(["run"])] * 25_000))
    with pytest.raises(CorruptError, match="larger than any"):
        read_published(published)
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int8()), ["x" * 2**20])
    sink = pa.BufferOutputStream()
    table = pa.table({"rest": words})
    parquet.write_table(table, sink, compression="zstd", store_schema=False)
    with pytest.raises(ValueError, match="larger than any"):
        read_table(parquet.ParquetFile(pa.BufferReader(sink.getvalue())))


def test_two_that_publish_at_once_lose_nothing(tmp_path, monkeypatch):
    root, to = tmp_path / "r", tmp_path / "evidence"
    results(root)
    other = Thread(target=publish, args=(root, sweep_of(root, [2]), to))

    def interrupted(root, runs):
        # By now the first has read what is published.
        if not other.ident:
            other.start()
            other.join(0.5)
        return runs

    monkeypatch.setattr("pernn.lab.trials.with_stages", interrupted)
    publish(root, sweep_of(root, [0, 1]), to)
    other.join()
    assert {one.spec["seed"] for one in read_published(to)} == {0, 1, 2}


def test_a_value_of_any_kind_comes_back_to_the_last_bit():
    import pyarrow as pa

    trials = [
        {
            "spec": {"whole": 1, "both": 1, "none": None, "empty": {}, "list": [], "deep": [[1]]},
            "result": {"fingerprint": "a", "metrics": {"whole": 0.1, "rest": -0.0}},
        },
        {
            "spec": {"whole": 2, "both": 1.0, "big": 2**63, "yes": True, "in": {"a.b": "ö"}},
            "result": {"fingerprint": "b", "metrics": {"loss": 5e-324}, "run": 3},
            "curves": {"loss": [0.1, None], "update": [1, 2], "mixed": [1, 2.0]},
        },
    ]
    file, about = open_parquet(to_parquet(trials, {"format": 2}))
    found = from_table(file.read(), about.pop("columns"))
    assert [json.dumps(one, sort_keys=True) for one in found] == [
        json.dumps(one, sort_keys=True) for one in trials
    ]
    assert about == {"format": 2}
    assert pa.types.is_int64(file.schema_arrow.field("whole").type)


def test_any_tool_can_use_the_columns(published):
    (file,) = published.iterdir()
    frame = pd.read_parquet(file)
    trials = read_published(published)
    assert list(frame["run"]) == [one.run for one in trials]
    types = frame.dtypes[["seed", "core.hidden_size", "token_accuracy"]]
    assert types.to_list() == ["int64", "int64", "float64"]
    assert list(frame.token_accuracy) == [one.row()["token_accuracy"] for one in trials]
    assert list(frame["environment.processor"]) == ["one"] * 3
    assert [list(curve) for curve in frame["curves.loss"]] == [one.curves["loss"] for one in trials]


def test_no_byte_is_unpickled_and_damage_is_said(published, tmp_path):
    (file,) = published.iterdir()
    file.write_bytes(pickle.dumps(Trap(tmp_path / "executed")))
    said: list[str] = []
    assert find_published(published, [spec(0).fingerprint()], said.append) == {}
    assert len(said) == 1
    assert file.name in said[0]
    assert not (tmp_path / "executed").exists()


def test_a_flipped_bit_is_noticed_or_changes_nothing(published):
    (file,) = published.iterdir()
    content, trials, noticed = file.read_bytes(), read_published(published), 0
    places = range(0, len(content), len(content) // 150)
    for place in places:
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            assert read_published(published) == trials
        except (CorruptError, VersionError):  # the format's own digit may be the one
            noticed += 1
    assert noticed > len(places) / 2
