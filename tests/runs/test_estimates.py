"""Estimates: what was measured against what a real trial takes; what is known and what is not."""

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pernn.errors import MachineError
from pernn.runs import RunSpec, estimate, estimates, execute, show_hours
from pernn.runs.estimates import count_checkpoints, measure_kinds
from pernn.runs.measuring import measure
from pernn.store import RunDirectory, num_bytes_below

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 64, "length": 8, "num_held_out": 64},
        "core": {"kind": "gru", "hidden_size": 32},
        "encoding": {"kind": "sinusoidal", "size": 32},
        "embedding_size": 32,
        "training": {
            "iterations": 44,
            "batch_size": 16,
            "log_interval": 5,
            "evaluation_interval": 10,
            "checkpoint_interval": 5,
            "keep_interval": 15,
        },
    }
)
HERE = {"jobs": 1, "threads": 1, "device": "cpu"}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "measurements.json"
    monkeypatch.setattr(estimates, "_known_path", lambda: path)
    return path


@pytest.fixture(scope="module")
def found() -> dict:
    return measure(SPEC, "cpu", 1)


def test_a_real_trial_takes_the_disk_that_was_estimated(tmp_path: Path, found: dict) -> None:
    execute(SPEC, tmp_path, device="cpu")
    directory = RunDirectory(tmp_path, SPEC.fingerprint())
    disk, checkpoint = estimates._sizes(SPEC, found)
    assert len(directory.checkpoints.updates()) == count_checkpoints(SPEC)
    assert disk == pytest.approx(num_bytes_below(directory.path), rel=0.15)
    assert checkpoint * count_checkpoints(SPEC) == pytest.approx(disk, rel=0.2)
    assert found["memory"] > 50_000_000
    assert len(found["update_seconds"]) >= 2
    assert all(seconds > 0 for seconds in found["update_seconds"])


def test_an_analysis_is_measured_by_one_checkpoint() -> None:
    analysis = {"num_per_condition": 2}
    found = measure(SPEC.override({"analysis": analysis}), "cpu", 1)
    assert found["update_seconds"][0] > 0


def test_what_was_measured_is_remembered(
    tmp_path: Path, known: Path, found: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(estimates, "measure_kinds", lambda kinds, **_: dict.fromkeys(kinds, found))
    specs = [SPEC, SPEC.override({"seed": 2})]
    unknown = estimate(specs, tmp_path, **HERE, measure=False)
    assert (unknown.hours, unknown.describe()) == (None, "not measured on this machine")
    first = estimate(specs, tmp_path, **HERE, on_measure=asked.append)
    again = estimate(specs, tmp_path, **HERE, on_measure=asked.append)
    assert asked == [1]
    assert first.hours == again.hours
    low, high = first.hours
    assert low == pytest.approx(2 * 44 * np.quantile(found["update_seconds"], 0.25) / 3600)
    assert low < high
    assert re.search(r"of disk \(.* free\)", first.describe())
    # Another shape, or another number of jobs, is another kind; a damaged file knows nothing.
    assert estimate(specs, tmp_path, **HERE | {"jobs": 2}, measure=False).hours is None
    known.write_text("{")
    assert estimate(specs, tmp_path, **HERE, measure=False).hours is None
    known.unlink()
    assert estimate(specs, tmp_path, **HERE, on_measure=asked.append).num_measured == 1


def test_kinds_that_were_not_measured_widen_the_range(
    tmp_path: Path, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"memory": 1, "round_seconds": 0.0}
    times = {8: [1.0], 16: [4.0]}

    def some(kinds: dict, **_: object) -> dict:
        sizes = {key: spec.task.vocab_size for key, spec in kinds.items()}
        return {key: {"update_seconds": times[k], **more} for key, k in sizes.items() if k in times}

    monkeypatch.setattr(estimates, "measure_kinds", some)
    specs = [SPEC.override({"task.vocab_size": size}) for size in (8, 16, 32)]
    found = estimate(specs, tmp_path, **HERE)
    assert (found.num_kinds, found.num_measured) == (3, 2)
    assert found.hours == pytest.approx((44 * 6 / 3600, 44 * 9 / 3600))
    assert "2 of 3 kinds measured" in found.describe()
    assert found.num_slow == 1


def test_the_smallest_kind_is_measured_first_then_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def answer(*_: object, input: str, **__: object) -> object:  # noqa: A002 (its name in `run`)
        asked.extend(json.loads(line)["key"] for line in input.splitlines()[1:])
        return subprocess.CompletedProcess([], 0, stdout="", stderr="")

    monkeypatch.setattr(estimates.subprocess, "run", answer)
    kinds = {size: SPEC.override({"task.vocab_size": int(size)}) for size in ("64", "8", "32")}
    assert measure_kinds(kinds, **HERE) == {}
    assert asked == ["8", "64", "32"]


def test_a_worker_measures_and_says_what_does_not_fit() -> None:
    large = SPEC.override({"task.vocab_size": 2**31, "embedding_size": 2**20})
    found = measure_kinds({"a": SPEC, "b": large}, **HERE)
    assert found["a"]["update_seconds"]
    assert not found["b"]["fits"]
    assert "GiB of memory" in found["b"]["error"]


def test_what_does_not_fit_is_refused_by_how_much() -> None:
    fits = {"hours": (1, 2), "num_kinds": 1, "num_measured": 1, "disk": 1, "memory": 1}
    fits |= {"free_disk": 2 * 10**9, "free_memory": 2 * 10**9}
    estimates.Estimate(**fits).check()
    for values, said in (
        ({"disk": 3_500_000_000}, "1.5 GB too little; choose another --results"),
        ({"memory": 5_000_000_000}, "3.0 GB too little; use fewer --jobs"),
        ({"failures": ["it needs 9 GiB"]}, "it needs 9 GiB, or try"),
    ):
        with pytest.raises(MachineError, match=re.escape(said)) as caught:
            estimates.Estimate(**{**fits, **values}).check()
        assert "--force" in str(caught.value)


@pytest.mark.parametrize("interval", [None, 2, 5, 6, 44, 100])
@pytest.mark.parametrize("iterations", [1, 4, 5, 9, 10, 11, 60])
def test_checkpoints_are_counted_as_they_are_kept(interval: int | None, iterations: int) -> None:
    values = {"training.iterations": iterations, "training.keep_interval": interval}
    kept: list[int] = []
    for update in range(1, iterations + 1):
        if update % 5 == 0 or update == iterations:
            kept.append(update)
            old, latest = kept[:-2], kept[-2:]
            kept = [one for one in old if interval and one % interval == 0] + latest
    assert count_checkpoints(SPEC.override(values)) == len(kept)


@pytest.mark.parametrize(
    ("hours", "said"),
    [(0.001, "a minute"), (0.5, "30 minutes"), (3, "3.0 hours"), (480, "20 days")],
)
def test_hours_are_written_for_people(hours: float, said: str) -> None:
    assert show_hours(hours) == said
