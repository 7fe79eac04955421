"""The index equals the directories, whatever happened to either."""

import errno
import json
import os
import random
import shutil
import sqlite3
import tempfile
import time
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from pernn.errors import BusyError, ConfigError, StoreError, TrialError
from pernn.runs import execute
from pernn.store import (
    RunDirectory,
    Sweep,
    index,
    index_file,
    indexed,
    query,
    read_records,
    read_status,
    read_statuses,
    rebuild,
    register,
    registering,
    save_sweep,
)
from store.finished import begin, expected, finish, indexed_values, spec

SQL = "SELECT * FROM records ORDER BY run"


def contents(root: Path) -> dict[str, object]:
    with indexed(root) as connection:
        return indexed_values(connection)


def filled(root: Path, number: int = 4) -> list[str]:
    noise = random.Random(number)
    runs = [finish(root, spec(seed), noise).fingerprint for seed in range(number)]
    save_sweep(root, Sweep("study-demo", "study", "demo", {"seed": 1}, [*runs, "f" * 16]))
    return runs


def test_records_are_those_of_the_directories_bit_for_bit(tmp_path: Path) -> None:
    runs = filled(tmp_path, 20)
    answer = query(tmp_path, SQL)
    found = {row[0]: dict(zip(answer.columns, row, strict=True)) for row in answer.rows}
    records = read_records(tmp_path, runs)
    assert found.keys() == {record["run"] for record in records}
    for record in records:
        row = found[record["run"]]
        for name, value in record.items():
            if name != "tables":
                assert row[name] == value, name
                assert not isinstance(value, float) or row[name].hex() == value.hex()


def test_trials_that_have_not_begun_are_waiting(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    sql = "SELECT standing, count(*) FROM trials WHERE sweep = 'study-demo' GROUP BY 1"
    assert query(tmp_path, sql).rows == [("done", 2), ("waiting", 1)]


def do_at_random(root: Path, noise: random.Random, seeds: range) -> None:
    """One thing that can happen to a results directory."""
    one = spec(noise.choice(seeds), noise.choice(["gru", "lstm"]))
    run = RunDirectory(root, one.fingerprint())
    spoilt = [b"", b"{", b'{"format": 99}', b'{"format": 1, "fingerprint": "x"}']
    match noise.randrange(8):
        case 0 | 1:
            finish(root, one, noise)
        case 2:
            finish(root, one, noise)
            register(root, run.fingerprint)
        case 3:
            begin(root, one)
        case 4:
            shutil.rmtree(run.path, ignore_errors=True)
        case 5 if run.path.exists():
            # As an editor saves: under a new name, then renamed.
            name = noise.choice(["spec.json", "result.json"])
            (run.path / "new").write_bytes(noise.choice(spoilt))
            (run.path / "new").replace(run.path / name)
        case 6 if run.path.exists():
            run.note("failed", update=3, reason="the loss became nan")
            (run.path / "result.json").unlink(missing_ok=True)
        case 7 if run.path.exists():
            # In place, after the clock of the file system ticked.
            time.sleep(0.025)
            path = run.path / "result.json"
            if path.exists():
                path.write_text(path.read_text().replace("0.", "1."))


@pytest.mark.parametrize("seed", range(8))
def test_it_equals_the_directories_after_anything(tmp_path: Path, seed: int) -> None:
    noise = random.Random(seed)
    (tmp_path / "runs").mkdir()
    for _ in range(20):
        do_at_random(tmp_path, noise, range(4))
        if noise.random() < 0.5:
            assert contents(tmp_path) == expected(tmp_path)
    assert contents(tmp_path) == expected(tmp_path)
    (tmp_path / "index.sqlite").unlink()
    assert contents(tmp_path) == expected(tmp_path)


def test_statuses_are_those_of_the_directories(tmp_path: Path) -> None:
    runs = [*filled(tmp_path), begin(tmp_path, spec(50)).fingerprint, "e" * 16]
    for _ in range(2):
        assert read_statuses(tmp_path, runs) == [read_status(tmp_path, run) for run in runs]
        begin(tmp_path, spec(50)).note("failed", update=0, reason="it broke")
    held = RunDirectory(tmp_path, runs[-2])
    with held.locked():
        assert read_statuses(tmp_path, runs[-2:-1])[0].standing == "running"


def test_a_sweep_is_taken_up_changed_and_forgotten(tmp_path: Path) -> None:
    runs = filled(tmp_path)
    sql = "SELECT sweep, count(*) FROM sweep_runs GROUP BY 1"
    assert query(tmp_path, sql).rows == [("study-demo", 5)]
    save_sweep(tmp_path, Sweep("study-demo", "study", "demo", {}, runs[:2]))
    assert query(tmp_path, sql).rows == [("study-demo", 2)]
    (tmp_path / "sweeps/study-demo/sweep.json").write_text("{")
    assert query(tmp_path, sql).rows == []
    shutil.rmtree(tmp_path / "sweeps")
    assert query(tmp_path, "SELECT * FROM sweeps").rows == []


CHANGES = {
    "newer": "PRAGMA user_version = 999999",
    "a table less": "DROP TABLE metrics",
    "a trigger more": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    "a log": "PRAGMA journal_mode = WAL",
}


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    match how:
        case "no database":
            path.write_bytes(b"<html>" * 1000)
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "header":
            path.write_bytes(b"\xff" * 50 + content[50:])
        case "pages":
            path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
        case "foreign":
            path.unlink()
            change(path, "CREATE TABLE photographs (name TEXT)")
        case "a directory":
            path.unlink()
            path.mkdir()
        case "a link":
            path.replace(path.with_name("elsewhere"))
            path.symlink_to("elsewhere")
        case "a loop":
            path.unlink()
            path.symlink_to(path)
        case _:
            change(path, CHANGES[how])


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


HARMS = ["no database", "cut", "header", "pages", "foreign", "a directory", "a link", "a loop"]


@pytest.mark.parametrize("how", [*HARMS, *CHANGES])
def test_a_damaged_or_foreign_file_is_no_obstacle(tmp_path: Path, how: str) -> None:
    runs = filled(tmp_path)
    before = query(tmp_path, SQL)
    damage(tmp_path / "index.sqlite", how)
    assert register(tmp_path, runs[0]) in (False, True)
    assert query(tmp_path, SQL) == before
    assert [one.standing for one in read_statuses(tmp_path, runs)] == ["done"] * 4
    assert contents(tmp_path) == expected(tmp_path)
    if how != "a directory":
        # Made anew in its place, the old one kept beside it.
        assert (tmp_path / "index.damaged.sqlite").exists() or how == "a loop"
        with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
            assert connection.execute("SELECT count(*) FROM runs").fetchone() == (4,)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_flipped_bytes_never_reach_the_user_as_an_error(tmp_path: Path, share: float) -> None:
    runs = filled(tmp_path)
    before = query(tmp_path, SQL)
    path = tmp_path / "index.sqlite"
    content = bytearray(path.read_bytes())
    noise = random.Random(int(share * 10))
    for _ in range(8):
        spoilt = bytearray(content)
        # Within a window, so that every page of the file has its turn.
        first = int(share * (len(content) - 64))
        for _ in range(8):
            spoilt[first + noise.randrange(64)] ^= 1 << noise.randrange(8)
        path.write_bytes(spoilt)
        assert len(read_statuses(tmp_path, runs)) == 4
        query(tmp_path, SQL)
    rebuild(tmp_path)
    assert query(tmp_path, SQL) == before


def test_what_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    runs = filled(tmp_path)
    tmp_path.joinpath("index.lock").mkdir()
    assert not register(tmp_path, runs[0])
    assert len(query(tmp_path, SQL).rows) == 4
    assert not (tmp_path / "index.sqlite").exists()


def as_somebody_else(act) -> int:
    """Do something in a process that may write nowhere, which the superuser's may."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            act()
        except BaseException:  # noqa: BLE001 told by the exit status
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("with_index", [False, True])
def test_a_read_only_directory_is_read(with_index: bool) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "results"
        runs = filled(root)
        if with_index:
            rebuild(root)
            runs.append(finish(root, spec(99), random.Random(1)).fingerprint)
        before = sorted(root.iterdir())
        for path in [root, *root.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        root.parent.chmod(0o755)

        def act() -> None:
            assert len(query(root, SQL).rows) == len(runs)
            assert not register(root, runs[0])
            assert {one.standing for one in read_statuses(root, runs)} == {"done"}

        status = as_somebody_else(act)
        for path in [root, *root.rglob("*")]:
            path.chmod(0o755)
        assert status == 0
        assert sorted(root.iterdir()) == before


@pytest.mark.parametrize("end", ["", "-journal"])
def test_a_link_leads_nowhere(tmp_path: Path, end: str) -> None:
    root, outside = tmp_path / "results", tmp_path / "outside"
    filled(root)
    (root / f"index.sqlite{end}").symlink_to(outside)
    assert len(query(root, SQL).rows) == 4
    assert not outside.exists()


def test_directories_that_cannot_be_listed_do_not_look_like_none(tmp_path: Path) -> None:
    filled(tmp_path)
    assert len(query(tmp_path, SQL).rows) == 4

    def breaks(path: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.os, "scandir", breaks)
        with pytest.raises(StoreError, match="Input/output error"):
            query(tmp_path, SQL)
    assert len(query(tmp_path, SQL).rows) == 4


def test_nothing_is_made_where_there_are_no_results(tmp_path: Path) -> None:
    assert read_statuses(tmp_path / "absent", ["a" * 16])[0].standing == "waiting"
    assert query(tmp_path / "absent", "SELECT * FROM runs").rows == []
    assert not register(tmp_path / "absent", "a" * 16)
    assert list(tmp_path.iterdir()) == []


def test_odd_values_and_names_do_no_harm(tmp_path: Path) -> None:
    (run,) = filled(tmp_path, 1)
    path = tmp_path / "runs" / run / "result.json"
    values = json.loads(path.read_text())
    names = ['a"b', "a'b", "x\x00y", "LOSS", "n" * 500, "", "\x1b[31m", "<b>", "); DROP TABLE runs"]
    values["metrics"] |= dict.fromkeys(names, 0.5)
    values["metrics"] |= {"big": 2**70, "nan": float("nan"), "deep": {"a": [1]}, "half": "\ud800"}
    values["num_parameters"] = 2**64
    path.write_text(json.dumps(values))
    answer = query(tmp_path, "SELECT name, value FROM metrics")
    found = dict(answer.rows)
    assert found["big"] == str(2**70)
    assert found["nan"] is None
    assert found["deep"] == '{"a": [1]}'
    assert found.keys() >= set(names)
    assert query(tmp_path, """SELECT "a""b", "a'b" FROM records""").rows == [(0.5, 0.5)]


def test_the_cost_of_registering_does_not_grow(tmp_path: Path) -> None:
    """Counted in statements and rows, since times on a busy machine prove nothing."""
    counts = []
    for number in (4, 64):
        root = tmp_path / str(number)
        filled(root, number)
        rebuild(root)
        run = finish(root, spec(1000), random.Random(1)).fingerprint
        steps: list[None] = []
        patched = index.open_index

        def counting(*words, patched=patched, steps=steps):
            connection = patched(*words)
            connection.set_progress_handler(lambda: steps.append(None), 1)
            return connection

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "open_index", counting)
            assert register(root, run)
        counts.append(len(steps))
    assert counts[1] < 1.2 * counts[0]


def test_whoever_ends_a_run_registers_it(tmp_path: Path) -> None:
    run = finish(tmp_path, spec(1), random.Random(1))

    def registered() -> list[tuple[str]]:
        if not (tmp_path / "index.sqlite").exists():
            return []
        with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
            return connection.execute("SELECT run FROM runs").fetchall()

    with pytest.raises(BusyError), registering(tmp_path, run.fingerprint):
        raise BusyError("another process is at it")
    assert registered() == []
    with pytest.raises(TrialError), registering(tmp_path, run.fingerprint):
        raise TrialError("the loss became nan")
    assert registered() == [(run.fingerprint,)]


def test_an_execution_registers_its_run(tmp_path: Path) -> None:
    short = {"iterations": 2, "batch_size": 2, "checkpoint_interval": 1}
    small = spec(1).override(
        {"embedding_size": 8, "encoding.size": 8}
        | {f"training.{name}": value for name, value in short.items()}
    )
    execute(small, tmp_path, device="cpu")
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        rows = connection.execute("SELECT run, standing FROM runs").fetchall()
        (loss,) = connection.execute("SELECT loss FROM records").fetchone()
    assert rows == [(small.fingerprint(), "done")]
    result = RunDirectory(tmp_path, small.fingerprint()).read_result()
    assert result is not None
    assert loss == result["metrics"]["loss"]


def test_a_rebuild_needs_a_directory_that_can_be_written(tmp_path: Path) -> None:
    filled(tmp_path)
    assert rebuild(tmp_path) == 4
    (tmp_path / "index.sqlite").unlink()
    (tmp_path / "index.sqlite").mkdir()
    with pytest.raises(StoreError, match=r"index\.sqlite"):
        rebuild(tmp_path)


def test_a_file_in_use_is_not_set_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    with indexed(tmp_path) as connection:
        index_file.set_aside(tmp_path)
        assert (tmp_path / "index.sqlite").exists()
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (4,)
    index_file.set_aside(tmp_path)
    assert not (tmp_path / "index.sqlite").exists()


def test_a_name_that_is_no_runs_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(ConfigError):
        read_statuses(tmp_path, ["../../etc"])
