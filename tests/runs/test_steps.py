"""Fused steps are taken where they agree and are faster; a run goes on with those it began with."""

import itertools
import json
from pathlib import Path

import pytest
import torch

from pernn.errors import MachineError
from pernn.runs import RunSpec, estimates, execute, steps
from pernn.runs.steps import choose_steps
from pernn.store import RunDirectory
from stand_in.fused_cells import cells_on_cpu, gru_cell, gru_cell_backward

CPU = torch.device("cpu")
SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 6, "length": 3, "num_held_out": 4},
        "core": {"kind": "gru", "hidden_size": 4},
        "encoding": {"kind": "none"},
        "embedding_size": 4,
        "training": {"iterations": 6, "batch_size": 4, "checkpoint_interval": 3},
    }
)
FASTER, SLOWER = (3.0, 2.0), (2.0, 3.0)


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "measurements.json"
    monkeypatch.setattr(estimates, "_known_path", lambda: path)
    monkeypatch.setattr(steps, "REPEATS", 1)
    return path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    """Return what makes a plain and a fused recurrence, which take turns, last some seconds."""

    def make(plain: float, fused: float) -> None:
        moments = itertools.accumulate(itertools.cycle([0.0, plain, 0.0, fused]))
        monkeypatch.setattr(steps, "now", lambda device: next(moments))

    return make


def swapped(given, recurrent, *more):
    """The GRU's cell with reset and update in each other's place."""
    reset, update, new = given.chunk(3, 1)
    return gru_cell(torch.cat([update, reset, new], 1), recurrent, *more)


def without_numbers(grad, workspace, has_bias):
    return gru_cell_backward(grad * float("nan"), workspace, has_bias)


def failing(*args):
    raise RuntimeError("no kernel image is available\nand more")


@pytest.mark.parametrize("core", ["gru", "lstm"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_fused_steps_that_agree_and_are_faster_are_taken(clock, known, core, precision):
    spec, said = SPEC.override({"core.kind": core, "training.precision": precision}), []
    with cells_on_cpu():
        clock(*FASTER)
        assert choose_steps(spec, CPU, said.append)
        # It is remembered, beside what others have measured and for this batch alone.
        estimates.remember({"another": {"update_seconds": [1.0]}})
        clock(*SLOWER)
        assert choose_steps(spec, CPU, said.append)
        assert not choose_steps(spec.override({"training.micro_batch": 2}), CPU, said.append)
    assert said == []
    assert list(estimates.read_known("update_seconds")) == ["another"]
    assert len(json.loads(known.read_text())) == 3


@pytest.mark.parametrize("times", [SLOWER, (2.0, 2.0), (2.02, 2.0)])
def test_slower_ones_and_ties_are_not(clock, times):
    clock(*times)
    with cells_on_cpu():
        assert not choose_steps(SPEC, CPU)


@pytest.mark.parametrize(("cell", "why"), [(swapped, "differ from ours by"), (failing, "fail")])
def test_wrong_ones_are_never_taken_and_it_is_said_once(clock, cell, why):
    clock(*FASTER)
    said: list[str] = []
    with cells_on_cpu(_thnn_fused_gru_cell=cell):
        assert not choose_steps(SPEC, CPU, said.append)
        assert not choose_steps(SPEC, CPU, said.append)
    (line,) = said
    assert why in line
    assert "\n" not in line


def test_a_wrong_gradient_is_found(clock):
    clock(*FASTER)
    said: list[str] = []
    with cells_on_cpu(_thnn_fused_gru_cell_backward=without_numbers):
        assert not choose_steps(SPEC, CPU, said.append)
    assert "differ from ours by nan" in said[0]


def test_without_fused_cells_nothing_is_measured(monkeypatch, known):
    monkeypatch.setattr(steps, "measure_steps", None)
    assert not choose_steps(SPEC, CPU)
    with cells_on_cpu():
        assert not choose_steps(SPEC.override({"core.kind": "elman"}), CPU)
    assert not known.exists()


def test_too_little_memory_to_measure_is_not_remembered(monkeypatch, known):
    def run_out(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(steps, "_recurrence", run_out)
    with cells_on_cpu():
        assert not choose_steps(SPEC, CPU)
    assert not known.exists()


def began_with(root: Path) -> str | None:
    return RunDirectory(root, SPEC.fingerprint()).read_environment().get("steps")


def test_a_run_goes_on_with_the_steps_that_it_began_with(clock, known, tmp_path):
    results = {}
    with cells_on_cpu() as calls:
        for times, steps_then, other in ((FASTER, "fused", SLOWER), (SLOWER, None, FASTER)):
            for name, stops in (("whole", 0), ("in pieces", 4)):
                root = tmp_path / f"{steps_then} {name}"
                clock(*times)
                known.unlink(missing_ok=True)
                if stops:
                    execute(SPEC, root, device="cpu", on_update=lambda n: n != 4)
                    known.unlink()
                    clock(*other)
                    calls.clear()
                results[steps_then, name] = execute(SPEC, root, device="cpu").result
                assert began_with(root) == steps_then
            if steps_then is None:
                assert not calls
            else:
                assert calls["_thnn_fused_gru_cell_backward"] >= 2 * 6
    assert results["fused", "whole"] == results["fused", "in pieces"]
    assert results[None, "whole"] == results[None, "in pieces"]


def test_a_run_of_fused_steps_is_refused_where_they_are_missing_or_wrong(clock, known, tmp_path):
    clock(*FASTER)
    with cells_on_cpu():
        execute(SPEC, tmp_path, device="cpu", on_update=lambda n: n != 4)
    with pytest.raises(MachineError, match="missing or wrong here"):
        execute(SPEC, tmp_path, device="cpu")
    known.unlink()
    with (
        cells_on_cpu(_thnn_fused_gru_cell=swapped),
        pytest.warns(UserWarning, match="please report it"),
        pytest.raises(MachineError, match="missing or wrong here"),
    ):
        execute(SPEC, tmp_path, device="cpu")
    with cells_on_cpu():
        known.unlink()
        assert execute(SPEC, tmp_path, device="cpu").state == "finished"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("core", ["gru", "lstm"])
def test_fused_steps_agree_on_a_gpu(core, precision):
    spec = SPEC.override({"core.kind": core, "training.precision": precision})
    found = steps.measure_steps(spec, torch.device("cuda"))
    assert found["agrees"]
    assert min(found["recurrence_seconds"].values()) > 0
