"""The run directory: a contract that survives kills, edits and newer versions."""

import gc
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from pernn.errors import BusyError, ConfigError, StoreError, VersionError
from pernn.lab.config import checksum
from pernn.lab.store import (
    Checkpoint,
    Progress,
    RunDirectory,
    RunStatus,
    Sweep,
    gc_paused,
    load_sweep,
    read_progress,
    read_status,
    save_sweep,
    seconds_left,
)
from pernn.lab.store.files import FORMAT
from pernn.lab.trials import gather
from store.finished import begin, spec

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


def test_remains_of_a_killed_write_are_swept_up_and_a_place_that_is_a_file_is_said(run):
    (run.path / ".result.json.77.partial").write_text('{"half')
    with run.locked():
        pass
    assert not list(run.path.glob(".*.partial"))
    with pytest.raises(StoreError) as caught, RunDirectory(run.path / "spec.json", RUN).locked():
        pass
    assert "\\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["spec.json", "result.json"])
def test_a_newer_format_is_refused(run, name):
    content = {"format": FORMAT + 1, "fingerprint": RUN, "spec": SPEC, "metrics": {}}
    (run.path / name).write_text(json.dumps(content))
    with pytest.raises(VersionError, match="newer pernn"):
        run.read_spec() if name == "spec.json" else run.read_result()


def test_metrics_go_back_to_a_checkpoint_and_lose_a_torn_last_line(run):
    run.append_metrics({"update": 1})
    state = run.metrics_so_far()
    run.append_metrics({"update": 2})
    assert run.restore_metrics(state) == ""
    assert run.read_metrics() == [{"update": 1}]
    assert run.restore_metrics({}) == ""
    assert run.read_metrics() == []
    run.append_metrics({"update": 1})
    with (run.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"upda')
    assert run.read_metrics() == [{"update": 1}]
    run.append_metrics({"update": 2})
    assert run.read_metrics() == [{"update": 1}, {"update": 2}]


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


def test_names_of_changes_are_read_by_people_and_no_spec_is_waiting(run, tmp_path):
    assert read_status(tmp_path, RUN).state == "stopped"
    (run.path / "spec.json").unlink()
    assert read_status(tmp_path, RUN).state == "waiting"
    changes = {"core.kind": "gru", "task.vocab_size": [16, 64], "+encoding.kind": "learned"}
    sweep = Sweep("study-demo-98a0c730", "study", "demo", changes, [])
    changed = "core.kind=gru, task.vocab_size=[16, 64], +encoding.kind=learned"
    assert sweep.changes == changed


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


def test_between_checkpoints_the_metrics_tell(tmp_path):
    one = spec(1)
    run = begin(tmp_path, one)
    status = RunStatus(run.fingerprint, "running", 100)
    assert read_progress(tmp_path, status) == Progress(100, one.training.iterations, None)
    for update in (500, 1100):
        run.append_metrics({"update": update, "kind": "train", "loss": 1.0})
    # A kill cut this line short.
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 99')
    journal = run.path / "journal.jsonl"
    written = datetime.fromtimestamp((run.path / "metrics.jsonl").stat().st_mtime - 50, UTC)
    line = {"time": written.isoformat(), "event": "resumed", "update": 100}
    journal.write_text(json.dumps(line) + "\n")
    found = read_progress(tmp_path, status)
    assert (found.update, found.total) == (1100, one.training.iterations)
    assert found.rate == pytest.approx(20.0, rel=1e-3)
    assert found.seconds_left == pytest.approx((found.total - 1100) / 20, rel=1e-3)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\n", b"[]\n", b'{"update": "x"}\n'])
@pytest.mark.parametrize("name", ["spec.json", "journal.jsonl", "metrics.jsonl"])
def test_what_cannot_be_read_is_unknown(tmp_path, name, content):
    run = begin(tmp_path, spec(1))
    run.append_metrics({"update": 7})
    (run.path / name).write_bytes(content)
    found = read_progress(tmp_path, RunStatus(run.fingerprint, "running", 5))
    assert found.update in (5, 7)


def test_a_sweep_goes_on_at_the_pace_of_what_runs():
    statuses = [
        RunStatus("a", "finished", 0),
        RunStatus("b", "running", 40),
        RunStatus("c", "running", 60),
        RunStatus("d", "stopped", 30),
        RunStatus("e", "waiting"),
    ]
    running = [Progress(40, 100, 2.0), Progress(60, 100, 3.0)]
    # 60 + 40 of those that run, 70 of one that stopped, 100 of one that waits, 5 per second.
    assert seconds_left(statuses, running) == pytest.approx(270 / 5)
    assert seconds_left(statuses, [Progress(0, 100, None)]) is None
    assert seconds_left(statuses, []) is None
