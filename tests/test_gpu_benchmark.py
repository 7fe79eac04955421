"""`benchmarks/gpu.py` on a CPU: it goes on after failures, after death, and after Ctrl-C."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gpu import Item, Records, run_items
from gpu_parts import (
    PARTS,
    SMALL,
    Call,
    compare_with_cpu,
    items_of,
    time_updates,
    train,
)
from gpu_report import GOALS, render
from gpu_steps import compare_steps

from pernn.kernels import find_kernels, without_kernels
from stand_in.fused_cells import cells_on_cpu

FAR = float("inf")
STEPS = ("plain", "fused")
SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu.py"


def test_what_fails_is_reported_and_the_rest_goes_on(tmp_path):
    records, ran = Records(tmp_path), []

    def item(name, work):
        return Item("parity", name, lambda: ran.append(name) or work())

    def fail():
        raise ValueError("odd numbers")

    items = [
        item("bad", fail),
        item("good", lambda: {"found": 1.5}),
        item("long", lambda: {"update": 7, "finished": False}),
    ]
    assert run_items(items, records, call=1.0, until=FAR)
    assert run_items(items, records, call=1.0, until=FAR)
    assert ran == ["bad", "good", "long"]
    # A kill cuts a line short; the next call tries again what failed and goes on.
    with records.path.open("a") as file:
        file.write('{"part": "par')
    run_items([item("bad", lambda: {"found": 2}), *items[1:]], records, call=2.0, until=FAR)
    assert ran == ["bad", "good", "long", "bad", "long"]
    run_items(items, records, call=3.0, until=time.time())
    assert ran == ["bad", "good", "long", "bad", "long"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert {one["name"]: one["call"] for one in report} == {"bad": 2.0, "good": 1.0, "long": 2.0}


def test_the_report_names_failures_and_goals(tmp_path):
    on_gpu = {"part": "doctor", "name": "machine", "result": {"capability": "9.0"}}
    found = [on_gpu, {"part": "parity", "name": "x", "failure": "Traceback: odd", "date": "now"}]
    _, part, name, column, _ = GOALS[0]
    found.append({"part": part, "name": name, "result": {column: 4.9}})
    text = render({(one["part"], one["name"]): one for one in found})
    assert "**x failed** (now):" in text
    assert "Traceback: odd" in text
    assert [line.count("missed") for line in text.splitlines() if "(a), LSTM" in line] == [1]
    assert text.count("not measured") == len(GOALS) - 1


def test_goals_are_among_the_items(tmp_path):
    call = Call("cuda", Records(tmp_path), FAR)
    names = {(item.part, item.name) for part in PARTS for item in items_of(part, call)}
    assert {(part, name) for _, part, name, _, _ in GOALS} <= names


def test_parity_is_found_and_its_absence_noticed(monkeypatch):
    found = compare_with_cpu("cpu", "gru", "learned", "bf16")
    assert found["largest difference"] < found["tolerance"]
    # Without kernels both sides are the same arithmetic.
    assert (found["largest difference"] > 0) == (find_kernels() is not None)
    monkeypatch.setitem(compare_with_cpu.__globals__["TOLERANCE"], "bf16", -1.0)
    with pytest.raises(AssertionError):
        compare_with_cpu("cpu", "gru", "learned", "bf16")


def test_updates_are_timed(tmp_path):
    row = time_updates(Call("cpu", Records(tmp_path), FAR), "gru", 16, "fp32")
    assert min(row["ours ms"], row["(a) / ours"], row["(b) / ours"], row["layer alone ms"]) > 0


def test_plain_and_fused_steps_are_timed_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr("pernn.runs.estimates._known_path", lambda: tmp_path / "known.json")
    row = compare_steps("cpu", "lstm", (*SMALL, 16), "fp32")
    assert row["update, plain ms"] > 0
    assert (row["chosen"], len(row)) == ("plain", 2)
    monkeypatch.setattr("pernn.runs.steps.REPEATS", 1)
    with cells_on_cpu(), without_kernels():
        row = compare_steps("cpu", "lstm", (*SMALL, 16), "fp32")
    assert row["agrees"]
    times = [row[f"{what}, {name} ms"] for what in ("16 steps", "update") for name in STEPS]
    assert min(times) > 0


def test_a_training_goes_on_in_the_next_call(tmp_path, monkeypatch):
    monkeypatch.setitem(train.__globals__["ITERATIONS"], "cpu", 60)
    first = train("cpu", tmp_path, until=0.0)
    assert not first["finished"]
    last = train("cpu", tmp_path, until=FAR)
    assert last["finished"]
    assert last["update"] == 60
    assert last["training loss"] > 0


def test_ctrl_c_ends_what_was_started_and_the_next_call_goes_on(tmp_path):
    words = [sys.executable, str(SCRIPT), "--device", "cpu", "--out", str(tmp_path)]
    words += ["--parts", "tests"]
    running = subprocess.Popen([*words, "--parts", "training"], stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "results.jsonl").exists() and running.poll() is None:
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=240)
    assert running.returncode == 130, said
    assert "the same command goes on" in said
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no GPU was asked for" in (tmp_path / "report.md").read_text()
