"""How far a run is, from its files."""

import json
from datetime import UTC, datetime

import pytest

from pernn.lab.store import Progress, RunStatus, read_progress, seconds_left
from store.finished import begin, spec


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
