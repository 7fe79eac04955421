"""Benchmarks: a script computes what we do; those for GPUs and other processors find faults."""

import copy
from fnmatch import fnmatchcase

import gpu
import pytest
import torch
import updates
from processors import EMULATED, complaints, compute_everything, compute_on, is_possible
from torch.nn import functional as F
from updates import ScriptedNetwork, make_spec, script_update

from command_line import python
from oracle import PlainRNN
from pernn.errors import ConfigError
from pernn.kernels import find_kernels
from pernn.lab.runs import RunSpec, build
from pernn.lab.training.objective import DeviceBatch, batch_loss

CPU = torch.device("cpu")
SHAPE = (16, 6, 5, 9)
CORES = ("elman", "gru", "lstm", "s4d")


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("encoding", ["sinusoidal", "none", "repeated_embedding", "learned"])
def test_the_script_computes_what_we_do(core, encoding):
    trial = build(make_spec(core, SHAPE, encoding=encoding), CPU)
    batch = trial.stream.train(0, 6)
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    loss, _ = batch_loss(trial.model, DeviceBatch(tokens, targets, 5, 5))
    logits = ScriptedNetwork(trial.model, 10, 5)(tokens)
    torch.testing.assert_close(logits, PlainRNN(trial.model)(tokens, 5), rtol=1e-4, atol=1e-5)
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)


def test_the_script_learns_one_task():
    update = script_update(build(make_spec("gru", SHAPE), CPU), 32, CPU)
    losses = [float(update()) for _ in range(80)]
    assert sum(losses[-5:]) < 0.99 * sum(losses[:5])
    spec = RunSpec.load({"task": {"kind": "copying_memory", "hold_time": 3}})
    trial = build(spec.override({"core.hidden_size": 4}), CPU)
    with pytest.raises(ConfigError, match="reverses sequences"):
        script_update(trial, 2, CPU)


def test_the_command_prints_ratios_and_memory():
    words = ["--shape", "16,4,3,5", "--core", "gru", "--rounds", "2", "--threads", "1", "--memory"]
    words += ["--ways", "ours,autograd"]
    done = python(updates.__file__, *words)
    assert done.returncode == 0, done.stderr
    row = [cell.strip() for cell in done.stdout.splitlines()[-1].split("|")[1:-1]]
    assert row[:2] == ["H 16 B 4 L 3 K 5", "gru"]
    assert all(float(cell.split()[0]) > 0 for cell in row[2:6])
    assert row[6].count(" / ") == 2
    assert "threads: 1" in done.stdout
    assert {(64, 64, 8, 192), (128, 64, 16, 256)} <= {*updates.SHAPES}


def test_parity_is_found_and_its_absence_noticed(monkeypatch):
    found = gpu.compare_with_cpu(CPU, "gru", "learned", "bf16")
    assert found["largest difference"] < found["tolerance"]
    monkeypatch.setitem(gpu.TOLERANCE, "bf16", -1.0)
    with pytest.raises(AssertionError):
        gpu.compare_with_cpu(CPU, "gru", "learned", "bf16")


def test_what_fails_is_printed_and_the_rest_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "CORES", ("elman", "none such", "gru"))
    monkeypatch.setattr("sys.argv", ["gpu.py", "--device", "cpu", "--parts", "times"])
    assert gpu.main() == 1
    said = capsys.readouterr().out
    assert "| gru K=32 bf16 | " in said
    assert "2 failed\ntimes, none such K=32 bf16:\nTraceback" in said


@pytest.fixture(scope="module")
def native():
    """One spec on the processor at hand; `make test-processors` runs the suite on others."""
    return compute_everything()


@pytest.mark.parametrize("name", ["avx2", "baseline-no-compiler"])
def test_results_agree_between_processors_and_name_them(name, native):
    emulated = EMULATED[name]
    if not is_possible(emulated):
        pytest.skip("this processor cannot do as much")
    if name == "avx2" and find_kernels() is None:
        pytest.skip("no compiler")
    found = compute_on(emulated)
    assert fnmatchcase(found["arithmetic"], emulated.arithmetic)
    assert not complaints(native, found)


def test_products_that_do_not_round_would_be_noticed(native):
    other = copy.deepcopy(native)
    other["logits"]["gru bf16"] = native["logits"]["gru fp32"]
    (said,) = complaints(native, other)
    assert said == "gru bf16: logits differ by 100.0% of it"
