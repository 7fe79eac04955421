"""Published trials: what is in a record, what is refused, and how publications are merged."""

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pernn.errors import CorruptError
from pernn.store import (
    RunDirectory,
    Sweep,
    find_published,
    publish,
    read_published,
    read_records,
    save_sweep,
)
from pernn.store.publishing import MAX_POINTS
from store.finished import begin, finish, spec

pytest.importorskip("pyarrow")
SEEDS = range(3)


def sweep_of(root: Path, seeds=SEEDS) -> Sweep:
    runs = [spec(seed).fingerprint() for seed in seeds]
    found = Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs)
    save_sweep(root, found)
    return found


def results(root: Path, *, noise: int = 0, machine: str = "one", seeds=SEEDS) -> Sweep:
    for seed in seeds:
        run = finish(root, spec(seed), random.Random(seed + noise))
        run.write_environment({"processor": machine, "threads": 2, "device": "cpu"})
        lines = [{"update": n, "kind": "train", "loss": 1 / 3 + n} for n in range(1, 201)]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (run.path / "metrics.jsonl").write_text(text)
    begin(root, spec(99))
    return sweep_of(root, [*seeds, 99])


def alone(run: str) -> list[str]:
    return [run]


@pytest.fixture
def published(tmp_path: Path) -> Path:
    publish(tmp_path / "r", results(tmp_path / "r"), tmp_path / "evidence", alone)
    return tmp_path / "evidence"


def test_records_are_those_of_the_results_directory(tmp_path: Path, published: Path) -> None:
    found = {one.run: one.record() for one in read_published(published)}
    runs = [spec(seed).fingerprint() for seed in SEEDS]
    assert list(found) == sorted(runs)
    assert [found[run] for run in runs] == read_records(tmp_path / "r", runs)
    assert [one.run for one in read_published(published, [runs[1], "0" * 16])] == [runs[1]]
    one = read_published(published, runs[:1])[0]
    assert one.environment["processor"] == "one"
    assert len(one.curves["update"]) <= MAX_POINTS
    assert (one.curves["update"][-1], one.curves["loss"][0]) == (200, 1.33333)
    assert one.core_seconds.keys() == {runs[0]}


def test_reading_starts_no_thread_that_could_abort_the_end_of_a_process(published: Path) -> None:
    code = """
import os, pathlib, sys
from pernn.store import load_pyarrow, read_published
load_pyarrow()
before = os.listdir("/proc/self/task")
found = read_published(pathlib.Path(sys.argv[1]))
assert os.listdir("/proc/self/task") == before
print(len(found))
"""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("no list of threads")
    words = [sys.executable, "-c", code, str(published)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_again_changes_nothing_and_order_plays_no_part(tmp_path: Path, published: Path) -> None:
    (file,) = published.iterdir()
    before = file.read_bytes()
    root = tmp_path / "r"
    fates = publish(root, sweep_of(root), published, alone).fates
    assert (set(fates.values()), file.read_bytes()) == ({"identical"}, before)
    late = tmp_path / "late"
    for seeds in ([2], [1, 0]):
        publish(root, sweep_of(root, seeds), late, alone)
    assert (late / file.name).read_bytes() == before


def test_of_two_machines_the_first_stays_and_it_is_said(tmp_path: Path, published: Path) -> None:
    other = tmp_path / "other"
    sweep = results(other, noise=1, machine="two", seeds=(2, 3))
    made = publish(other, sweep, published, alone)
    assert list(made.fates.values()) == ["kept the first", "published"]
    machines = {one.spec["seed"]: one.environment["processor"] for one in read_published(published)}
    assert machines == {0: "one", 1: "one", 2: "one", 3: "two"}


def test_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "r"
    sweep = results(root)
    bad = RunDirectory(root, sweep.runs[0]).path / "result.json"
    bad.write_text(bad.read_text().replace('"token_accuracy": 0.', '"token_accuracy": 1.', 1))
    (RunDirectory(root, sweep.runs[1]).path / "metrics.jsonl").write_text("{\n")
    made = publish(root, sweep, tmp_path / "evidence", alone)
    assert list(made.left_out) == list(sweep.runs[:2])
    assert made.fates == {sweep.runs[2]: "published"}


def test_another_sweeps_file_is_not_taken_for_ones_own(tmp_path: Path, published: Path) -> None:
    other = Sweep("vocabulary_size-demo", "sorting", "demo", {}, [])
    with pytest.raises(CorruptError, match="holds vocabulary_size demo"):
        publish(tmp_path / "r", other, published, alone)


@pytest.mark.parametrize("column", ["spec", "result"])
def test_an_edited_record_is_refused(published: Path, column: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    (file,) = published.iterdir()
    table = parquet.read_table(file)
    texts = table.column(column).to_pylist()
    texts[1] = texts[1].replace('"seed":', '"seed":1') if column == "spec" else texts[0]
    place = table.column_names.index(column)
    parquet.write_table(table.set_column(place, column, pa.array(texts)), file)
    with pytest.raises(CorruptError, match=r"published trial .* another run"):
        read_published(published)


class Trap:
    """Opens a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return (Path.touch, (self.place,))


@pytest.mark.parametrize("cut", [False, True])
def test_no_byte_is_unpickled_and_damage_is_said(
    published: Path, tmp_path: Path, cut: bool
) -> None:
    (file,) = published.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1  # a page's checksum notices
    file.write_bytes(content if cut else pickle.dumps(Trap(tmp_path / "executed")))
    said: list[str] = []
    assert find_published(published, [spec(0).fingerprint()], said.append) == {}
    assert len(said) == 1
    assert file.name in said[0]
    assert not (tmp_path / "executed").exists()


def test_a_curve_keeps_both_ends_and_only_numbers(published: Path) -> None:
    for one in read_published(published):
        assert json.loads(json.dumps(one.curves)) == one.curves
        gaps = [b - a for a, b in zip(one.curves["update"], one.curves["update"][1:], strict=False)]
        assert len(set(gaps[1:])) == 1
