"""The run directory: a contract that survives kills, edits and newer versions."""

import gc
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pernn.errors import BusyError, ConfigError, CorruptError, StoreError, VersionError
from pernn.lab.store import (
    Checkpoint,
    RunDirectory,
    Sweep,
    gc_paused,
    list_sweeps,
    load_sweep,
    read_status,
    read_statuses,
    run_directory,
    save_sweep,
)
from pernn.lab.store.files import FORMAT, checksum
from pernn.lab.trials import gather

SPEC = {"task": {"kind": "reverse_ordering"}, "seed": 1}
RUN = checksum(SPEC)[:16]


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path, RUN)
    with run.locked():
        run.write_spec(SPEC)
    return run


def test_one_writer_at_a_time(run):
    script = f"""
import sys
from pathlib import Path
from pernn.lab.store import RunDirectory
with RunDirectory(Path({str(run.path.parents[1])!r}), {RUN!r}).locked():
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError), run.locked():
            pass
        assert read_status(run.path.parents[1], RUN).state == "running"
        # The system frees the lock, however the holder ends.
        holder.kill()
        holder.wait()
        with run.locked():
            pass


def test_looking_at_the_status_never_costs_a_run_its_lock(run, tmp_path):
    from threading import Event, Thread

    stop = Event()

    def look():
        while not stop.is_set():
            read_status(tmp_path, RUN)

    watcher = Thread(target=look)
    watcher.start()
    try:
        for _ in range(300):
            with run.locked():
                pass
    finally:
        stop.set()
        watcher.join()


def test_the_remains_of_a_killed_write_are_swept_up(run):
    (run.path / ".result.json.77.partial").write_text('{"half')
    with run.locked():
        pass
    assert not list(run.path.glob(".*.partial"))


def test_an_edited_spec_is_noticed(run):
    path = run.path / "spec.json"
    path.write_text(path.read_text().replace('"seed": 1', '"seed": 2'))
    with pytest.raises(CorruptError, match="was changed"):
        run.write_spec(SPEC)


@pytest.mark.parametrize("name", ["spec.json", "result.json"])
def test_a_newer_format_is_refused(run, name):
    content = {"format": FORMAT + 1, "fingerprint": RUN, "spec": SPEC, "metrics": {}}
    (run.path / name).write_text(json.dumps(content))
    with pytest.raises(VersionError, match="newer pernn"):
        run.read_spec() if name == "spec.json" else run.read_result()


def test_a_torn_last_line_is_dropped_by_the_next(run):
    run.append_metrics({"update": 1})
    with (run.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"upda')
    assert run.read_metrics() == [{"update": 1}]
    run.append_metrics({"update": 2})
    assert run.read_metrics() == [{"update": 1}, {"update": 2}]


def test_a_torn_line_in_the_middle_is_damage(run):
    (run.path / "metrics.jsonl").write_text('{"update": 1}\n{"upd\n{"update": 3}\n')
    with pytest.raises(CorruptError, match="line 2"):
        run.read_metrics()


def test_metrics_go_back_to_a_checkpoint(run):
    run.append_metrics({"update": 1})
    state = run.metrics_so_far()
    run.append_metrics({"update": 2})
    assert run.restore_metrics(state) == ""
    assert run.read_metrics() == [{"update": 1}]
    assert run.restore_metrics({}) == ""
    assert run.read_metrics() == []


@pytest.mark.parametrize("damage", ["lost", "cut", "changed", "zeros"])
def test_a_lost_or_damaged_log_is_restored_from_the_checkpoint(run, damage):
    run.append_metrics({"update": 1})
    state, path = run.metrics_so_far(), run.path / "metrics.jsonl"
    content = path.read_bytes()
    run.append_metrics({"update": 2})
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(
            {"cut": content[:5], "changed": b"7" + content, "zeros": bytes(40)}[damage]
        )
    assert f"lacks the {len(content)} bytes" in run.restore_metrics(state)
    assert path.read_bytes() == content
    run.append_metrics({"update": 3})
    assert run.read_metrics() == [{"update": 1}, {"update": 3}]


def test_every_new_entry_is_on_disk_before_a_checkpoint_counts(tmp_path, monkeypatch):
    on_disk: dict[int, set[str]] = {}
    fsync = os.fsync

    def sync(descriptor):
        fsync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            entries = Path(f"/dev/fd/{descriptor}").iterdir()
            on_disk[os.fstat(descriptor).st_ino] = {path.name for path in entries}

    monkeypatch.setattr(os, "fsync", sync)
    root = tmp_path / "new" / "results"
    save_sweep(root, Sweep("a", "b", "demo", {}, [RUN]))
    run = RunDirectory(root, RUN)
    with run.locked():
        run.write_spec(SPEC)
        run.restore_metrics({})
        run.note("started")
        run.append_metrics({"update": 1})
        run.checkpoints.save(Checkpoint(1, {"w": np.ones(2)}, run.metrics_so_far()))
        lost = {
            path
            for path in tmp_path.rglob("*")
            if path.name not in on_disk.get(path.parent.stat().st_ino, ())
            and path.name != "lock"
            and not path.name.startswith("lease-")
        }
    assert not lost


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "runs").write_text("a file where a directory should be")
    with pytest.raises(StoreError) as caught, RunDirectory(tmp_path, RUN).locked():
        pass
    assert "\n" not in str(caught.value)


def test_a_record_is_the_spec_beside_the_metrics_which_take_no_columns_place(run, tmp_path):
    assert gather(tmp_path, [RUN]) == []
    metrics = {"run": 1.0, "seed": 2.0, "tables": 3.0, "loss": 0.5}
    run.write_result({"fingerprint": RUN, "metrics": metrics})
    record = {
        "run": RUN,
        "task.kind": "reverse_ordering",
        "seed": 1,
        "num_parameters": None,
        "tables": {},
        "metric.run": 1.0,
        "metric.seed": 2.0,
        "metric.tables": 3.0,
        "loss": 0.5,
    }
    assert gather(tmp_path, [RUN])[0].row() == record
    more = {"num_parameters": 7, "tables": {"by_length": {"length": [1, 2], "loss": [0.5, 0.25]}}}
    run.write_result({"fingerprint": RUN, "metrics": metrics, **more})
    assert gather(tmp_path, [RUN])[0].row() == record | more


def test_states(run, tmp_path):
    assert read_status(tmp_path, RUN).state == "stopped"
    assert read_status(tmp_path, "f" * 16).state == "waiting"
    run.note("failed", update=3, reason="nan")
    status = read_status(tmp_path, RUN)
    assert (status.state, status.reason) == ("failed", "nan")
    run.write_result({"fingerprint": RUN, "metrics": {}})
    assert read_status(tmp_path, RUN).state == "finished"


def test_a_look_reads_only_the_results_that_are_new(tmp_path, monkeypatch):
    first, second, other = (f"{number:016x}" for number in range(3))
    for name in (first, second):
        run = RunDirectory(tmp_path, name)
        run.path.mkdir(parents=True)
        run.write_result({"fingerprint": name, "metrics": {}})
    before = read_statuses(tmp_path, [first, second])
    (RunDirectory(tmp_path, second).path / "result.json").unlink()
    read: list[str] = []
    look = run_directory.read_status
    monkeypatch.setattr(
        run_directory, "read_status", lambda root, run: read.append(run) or look(root, run)
    )
    found = read_statuses(tmp_path, [first, second, other], before)
    assert read == [second, other]
    assert [found[run].state for run in found] == ["finished", "waiting", "waiting"]


def test_a_failure_is_noted_of_a_run_that_was_not_begun_and_never_elsewhere(tmp_path):
    RunDirectory(tmp_path / "results", RUN).note_failure("no GPU", "MachineError")
    status = read_status(tmp_path / "results", RUN)
    assert (status.state, status.reason) == ("failed", "no GPU")
    (tmp_path / "outside").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "runs").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="symbolic link"):
        RunDirectory(tmp_path / "linked", RUN).note_failure("no GPU")
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_as_it_was_even_after_an_error(collecting):
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with suppress(KeyError), gc_paused(), gc_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()


SWEEP = Sweep("study-demo", "study", "demo", {"seed": 1}, ["0" * 16])


def test_load_gives_what_was_saved(tmp_path):
    save_sweep(tmp_path, SWEEP)
    assert load_sweep(tmp_path, "study-demo") == SWEEP
    assert list_sweeps(tmp_path) == ["study-demo"]


@pytest.mark.parametrize(
    ("use", "name"),
    [
        *((load_sweep, name) for name in ("..", "../x", "a/b", "", ".hidden", "<script>", "a\nb")),
        *((RunDirectory, name) for name in ("", "..", "../../etc", "0123456789abcdeF", "a" * 17)),
    ],
)
def test_names_cannot_lead_elsewhere(tmp_path, use, name):
    with pytest.raises(ConfigError):
        use(tmp_path, name)


def test_an_unknown_sweep_is_answered_with_the_known(tmp_path):
    save_sweep(tmp_path, SWEEP)
    with pytest.raises(ConfigError, match="study-demo"):
        load_sweep(tmp_path, "other")


def test_people_read_what_was_changed_not_a_digest():
    changes = {"core.kind": "gru", "task.vocab_size": [16, 64], "+encoding.kind": "learned"}
    sweep = Sweep("study-demo-98a0c730", "study", "demo", changes, [])
    changed = "core.kind=gru, task.vocab_size=[16, 64], +encoding.kind=learned"
    assert sweep.changes == changed
