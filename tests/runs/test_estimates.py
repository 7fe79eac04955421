"""Estimates: what was measured against what a real trial takes; what is known and what is not."""

import re
import time
from functools import cache

import numpy as np
import pytest

from pernn.errors import MachineError, show_time
from pernn.kernels import loading
from pernn.lab.runs import estimate, estimates, execute
from pernn.lab.runs.estimates import measure
from pernn.lab.store import RunDirectory
from tiny import tiny

SPEC = tiny(
    "reverse_ordering",
    "gru",
    hidden_size=32,
    vocab_size=64,
    length=8,
    num_held_out=64,
    training={"iterations": 44, "checkpoint_interval": 5, "keep_interval": 15},
)
HERE = {"jobs": 1, "threads": 1, "device": "cpu"}


def test_a_real_trial_keeps_the_checkpoints_that_were_estimated(tmp_path):
    found = estimate([SPEC, SPEC.override({"seed": 2})], tmp_path, **HERE)
    assert (found.num_kinds, found.num_measured) == (1, 1)
    low, high = found.hours
    assert 0 < low <= high
    assert 50_000_000 < found.memory < found.free_memory
    assert not any(tmp_path.iterdir())
    execute(SPEC, tmp_path, device="cpu")
    folder = RunDirectory(tmp_path, SPEC.fingerprint()).path / "checkpoints"
    tensors = sorted(path.stat().st_size for path in folder.rglob("*.safetensors"))
    # Those at 15, 30, 40 and 44, of two trials, and one that is being written.
    assert len(tensors) == 4
    assert found.disk == pytest.approx(9 * tensors[-1], rel=0.05)


def test_the_time_is_that_of_the_updates_to_come(tmp_path, monkeypatch):
    seconds = [1.0, 2.0, 3.0, 4.0]
    monkeypatch.setattr(estimates, "measure", lambda *_: (seconds, 0))
    specs = [SPEC, SPEC.override({"seed": 2})]
    expected = [2 * 44 * np.quantile(seconds, share) / 3600 for share in (0.25, 0.75)]
    assert estimate(specs, tmp_path, **HERE).hours == pytest.approx(expected)
    halved = estimate(specs, tmp_path, **HERE | {"jobs": 2}).hours
    assert halved == pytest.approx([hours / 2 for hours in expected])
    monkeypatch.setattr(estimates, "measure", lambda *_: ([1.0], 1_000))
    whole = estimate([SPEC], tmp_path, **HERE)
    more = estimate([SPEC], tmp_path, **HERE, to_come=9)
    assert more.hours == pytest.approx([10 * hours for hours in whole.hours])
    assert more.disk - 1_000 == 10 * (whole.disk - 1_000)
    assert "for at least 10 trials" in more.describe()
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update < 20)
    assert estimate([SPEC], tmp_path, **HERE).hours == pytest.approx([24 / 3600] * 2)


def test_what_decides_the_time_of_an_update_makes_a_kind_and_an_analysis_is_one(tmp_path):
    changes = [
        {},
        {"training.iterations": 50, "seed": 2},
        {"training.optimizer": "sgd"},
        {"training.frozen_embedding": True},
    ]
    found = estimate([SPEC.override(change) for change in changes], tmp_path, **HERE)
    assert (found.num_kinds, found.num_measured) == (3, 3)
    (seconds,), size = measure(SPEC.override({"analysis": {"num_per_condition": 2}}), "cpu", 1)
    assert seconds > 0
    assert size == 0


def test_kernels_that_are_compiled_first_are_no_part_of_an_update(monkeypatch):
    """On a fresh machine the first update would take as long as the compiler."""
    load = loading._load

    def compile_first():
        time.sleep(2 * estimates.ENOUGH_SECONDS)
        return load()

    decide = cache(loading._decide.__wrapped__)
    monkeypatch.setattr(loading, "_decide", decide)
    monkeypatch.setattr(loading, "_load", compile_first)
    taken, _ = measure(SPEC, "cpu", 1)
    assert decide.cache_info().currsize
    assert len(taken) > 1
    assert max(taken) < estimates.ENOUGH_SECONDS


def test_kinds_that_were_not_measured_widen_the_range(tmp_path, monkeypatch):
    times, asked = {8: [1.0], 64: [4.0]}, []

    def some(spec, *_):
        asked.append(spec.task.vocab_size)
        if spec.task.vocab_size not in times:
            raise ValueError("whatever a part raises")
        return times[spec.task.vocab_size], 0

    monkeypatch.setattr(estimates, "measure", some)
    specs = [SPEC.override({"task.vocab_size": size}) for size in (16, 8, 64)]
    found = estimate(specs, tmp_path, **HERE)
    assert asked == [8, 64, 16], "the smallest and the largest tell the range"
    assert (found.num_kinds, found.num_measured) == (3, 2)
    assert found.hours == pytest.approx((44 * 6 / 3600, 44 * 9 / 3600))
    assert "2 of 3 kinds measured" in found.describe()
    # Where no time is left, the others are not begun.
    monkeypatch.setattr(estimates, "ALL_SECONDS", -1.0)
    assert estimate(specs, tmp_path, **HERE).num_measured == 1
    assert estimate(specs[:1], tmp_path, **HERE).describe() == "nothing that could be measured"


def test_what_no_machine_can_hold_or_does_not_fit_is_refused(tmp_path):
    large = SPEC.override({"task.vocab_size": 2**31, "embedding_size": 2**20})
    with pytest.raises(MachineError, match="GiB of memory"):
        estimate([SPEC, large], tmp_path, **HERE)
    fits = {"hours": (1, 2), "num_kinds": 1, "num_measured": 1, "disk": 1, "memory": 1}
    fits |= {"free_disk": 2 * 10**9, "free_memory": 2 * 10**9}
    estimates.Estimate(**fits).check()
    for values, said in (
        ({"disk": 3_500_000_000}, "1.5 GB too little; choose another --results"),
        ({"memory": 5_000_000_000}, "3.0 GB too little; use fewer --jobs"),
    ):
        with pytest.raises(MachineError, match=re.escape(said)) as caught:
            estimates.Estimate(**{**fits, **values}).check()
        assert "--force" in str(caught.value)


def test_times_are_written_for_people():
    said = ["", "about 3 s", "about 30 min", "about 3 h 5 min", "about 20.0 days"]
    assert [*map(show_time, (None, 3, 1800, 3 * 3600 + 300, 480 * 3600))] == said
