"""Precision policies: named, checked, and gone when the block ends."""

import contextlib
import platform

import pytest
import torch

from agreement import each_way, threads
from command_line import python
from pernn.cores import Elman
from pernn.errors import MachineError
from pernn.kernels import describe_kernels, find_kernels, flush_denormals, rounded, rounds_products
from pernn.lab.cores import CORES
from pernn.lab.runs import build
from pernn.lab.training import (
    TrainState,
    advance,
    choose_device,
    computing,
    limit_gpu_memory,
    rounding,
    share_devices,
)
from pernn.models import PositionEncodedRNN
from tiny import tiny

CPU = torch.device("cpu")


def settings() -> tuple[object, ...]:
    products = torch.backends.mkldnn.matmul
    cuda = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    ours = torch.is_autocast_enabled("cpu"), rounds_products(CPU)
    return *cuda, products.fp32_precision, *ours


@pytest.mark.filterwarnings("ignore:Please use the new API settings")  # PyTorch 2.9
def test_settings_are_left_as_they_were() -> None:
    before = settings()
    with computing("bf16", CPU), rounding("bf16", CPU):
        # Our products round; PyTorch's must not, and autocast would keep their results rounded.
        assert rounds_products(CPU)
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert not torch.is_autocast_enabled("cpu")
    assert settings() == before
    with computing("fp32", CPU):
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
    assert settings() == before


@pytest.mark.skipif(find_kernels() is None, reason=describe_kernels())
@pytest.mark.parametrize("before", [False, True])
def test_every_thread_takes_tiny_numbers_for_zero_and_goes_back(before: bool) -> None:
    tiny = torch.full((100_000,), 1e-40)

    def is_zero():
        return (tiny * 1).view(torch.int32) == 0

    try:
        with threads(2):
            flush_denormals(flush=False)
            assert not is_zero().any()
            flush_denormals(flush=before)
            with computing("fp32", CPU):
                assert is_zero().all()
            assert (is_zero() == before).all()
    finally:
        flush_denormals(flush=False)


def test_settings_by_the_newer_names_are_left_as_they_were() -> None:
    """In a process of its own, as PyTorch refuses the older names ever after."""
    code = """
import torch
from pernn.kernels import library_products
parts = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
parts[0].fp32_precision = "tf32"
before = [part.fp32_precision for part in parts]
for tf32, name in ((False, "ieee"), (True, "tf32")):
    with library_products(tf32=tf32):
        print([part.fp32_precision for part in parts] == [name] * 3)
    print([part.fp32_precision for part in parts] == before)
"""
    done = python("-W", "error", "-c", code)
    assert done.stdout.split() == ["True"] * 4, done.stderr


@each_way
@pytest.mark.parametrize("core", CORES.names())
def test_bf16_rounds_products_only(core: str, way, generator: torch.Generator) -> None:
    model = PositionEncodedRNN(32, core, embedding_size=32, hidden_size=32, generator=generator)
    tokens = torch.randint(32, (8, 6), generator=generator)
    with computing("fp32", CPU), way():
        exact = model(tokens, 6)
    with computing("bf16", CPU), rounding("bf16", CPU), way():
        rounded = model(tokens, 6)
        states, _ = model.core.recur(model.project(tokens, 6))
    rounded.float().square().sum().backward()
    assert states.dtype == torch.float32
    assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.parameters())
    difference = (rounded.float() - exact).abs().max()
    assert 0 < difference < 0.05


def test_what_is_not_here_is_said_in_one_line() -> None:
    for name in ("cuda:99", "nonsense", "meta"):
        with pytest.raises(MachineError) as caught:
            choose_device(name)
        assert "\\n" not in str(caught.value)
    with pytest.raises(MachineError, match="tf32 needs a CUDA device"), computing("tf32", CPU):
        pass


def test_the_memory_of_a_gpu_is_limited_and_that_of_a_cpu_is_not(monkeypatch) -> None:
    told = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *of: told.append(of))
    limit_gpu_memory("cpu", 0.5)
    assert not told
    monkeypatch.setattr("pernn.lab.training.devices.choose_device", torch.device)
    limit_gpu_memory("cuda:1", 0.25)
    assert told == [(0.25, 1)]


@pytest.mark.parametrize(
    ("name", "num_gpus", "expected"),
    [
        ("auto", 0, [("auto", 1 / 3)] * 3),
        ("auto", 1, [("cuda:0", 1 / 3)] * 3),
        ("auto", 2, [("cuda:0", 1 / 2), ("cuda:1", 1), ("cuda:0", 1 / 2)]),
        ("cuda", 8, [("cuda:0", 1), ("cuda:1", 1), ("cuda:2", 1)]),
        ("cuda:1", 2, [("cuda:1", 1 / 3)] * 3),
        ("cpu", 2, [("cpu", 1 / 3)] * 3),
    ],
)
def test_three_workers_share_what_gpus_there_are(monkeypatch, name, num_gpus, expected) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: num_gpus)
    assert [share_devices(name, worker, 3) for worker in range(3)] == expected
    # More than there are trials: a worker that takes the place of one that is still leaving.
    assert share_devices(name, 3, 1)[1] == 1


@pytest.mark.gpu
def test_a_process_takes_no_more_than_its_share_of_a_gpu() -> None:
    total = torch.cuda.get_device_properties("cuda:0").total_memory
    limit_gpu_memory("cuda:0", 0.25)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(total // 2, dtype=torch.int8, device="cuda:0")
    finally:
        limit_gpu_memory("cuda:0", 1.0)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_training_step_on_a_gpu(precision: str) -> None:
    device = choose_device("cuda")
    model = PositionEncodedRNN(8, "lstm", embedding_size=16, hidden_size=16).to(device)
    with computing(precision, device), rounding(precision, device):
        model(torch.zeros(2, 3, dtype=torch.long, device=device), 3).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def defined(core: str, tokens: torch.Tensor, model: PositionEncodedRNN) -> torch.Tensor:
    """Compute an Elman network's or LSTM's predictions from the definition of bf16, in float64."""

    def multiply(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return rounded(rows.float()).double() @ rounded(weight).double().t()

    cell, parameters = model.core, dict(model.core.named_parameters())
    bias = (parameters["bias_ih_l0"] + parameters["bias_hh_l0"]).double()
    vectors = model.embedding.weight[torch.cat([tokens, tokens.new_full(tokens.shape, 32)], 1)]
    encodings = model.encoding(12, 6)
    width = vectors.shape[2]
    columns = parameters["weight_ih_l0"].split([width, encodings.shape[1]], dim=1)
    gates = multiply(vectors, columns[0]) + multiply(encodings, columns[1]) + bias
    hidden = memory = gates.new_zeros(len(tokens), cell.hidden_size)
    found = []
    for step in gates.unbind(1):
        total = step + multiply(hidden, parameters["weight_hh_l0"])
        if core == "elman":
            hidden = total.tanh()
        else:
            entry, forget, update, leave = total.chunk(4, dim=1)
            memory = forget.sigmoid() * memory + entry.sigmoid() * update.tanh()
            hidden = leave.sigmoid() * memory.tanh()
        found.append(hidden)
    outputs = torch.stack(found[6:], dim=1)
    return multiply(outputs, model.output_layer.weight) + model.output_layer.bias.double()


@each_way
@pytest.mark.parametrize("core", ["elman", "lstm"])
def test_bf16_is_what_its_definition_says(core: str, way, generator: torch.Generator) -> None:
    """On every processor: a state at the edge of a rounding may fall to the other side."""
    model = PositionEncodedRNN(32, core, embedding_size=32, hidden_size=32, generator=generator)
    tokens = torch.randint(32, (8, 6), generator=generator)
    with torch.no_grad():
        with computing("bf16", CPU), way():
            found = model(tokens, 6).double()
        expected = defined(core, tokens, model)
        with computing("fp32", CPU):
            exact = model(tokens, 6).double()
    assert (found - expected).abs().max() < 2e-4
    assert (found - expected).norm() < 0.05 * (exact - expected).norm()


class OwnProducts(Elman):
    """A core that multiplies by itself, with its own projection in plain PyTorch."""

    def project(self, inputs, *, offset=0, bias=True):
        weight = self.weight_ih_l0[:, offset : offset + inputs.shape[-1]]
        return inputs @ weight.t() + (self.input_bias(0) if bias else 0)


def test_products_that_would_not_round_are_refused(generator: torch.Generator) -> None:
    spec = tiny("reverse_ordering", "elman", training={"precision": "bf16"})
    trial = build(spec, CPU)
    own = OwnProducts(trial.model.core.input_size, trial.model.core.hidden_size)
    for core, refused in ((trial.model.core, False), (own, True)):
        trial.model.core = core
        state = TrainState.fresh(trial.model, trial.preset)
        expected = pytest.raises(
            MachineError, match="bf16 is not defined on the CPU for torch's `mm`"
        )
        with computing("bf16", CPU), expected if refused else contextlib.nullcontext():
            for _ in advance(state, trial.stream, spec.training, trial.preset, CPU):
                pass


# Counts the page faults of taking memory again.
FAULTS = """
import resource, torch
from pernn.lab.training import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(2**24).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_memory_that_was_freed_costs_no_page_faults_again():
    done = python("-c", FAULTS)
    left, kept = map(int, done.stdout.split())
    assert kept < 100 < left
