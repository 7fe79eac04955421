"""The fused optimiser: the bits of PyTorch's own, without what PyTorch's own loads."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from pernn.lab.training.state import FusedAdam

BETAS, EPS = (0.9, 0.98), 1e-9
ON_GPU = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
)


def parameters(device: str, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    source = torch.Generator().manual_seed(0)
    shapes = [(7, 5), (5,), (3, 2, 2), (1,)]
    values = [torch.randn(shape, generator=source, dtype=dtype) for shape in shapes]
    # The last one never gets a gradient.
    return [nn.Parameter(value.to(device)) for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_GPU)])
def test_equals_the_optimiser_of_pytorch(device: str, dtype: torch.dtype) -> None:
    own, theirs = parameters(device, dtype), parameters(device, dtype)
    adam = FusedAdam(own, betas=BETAS, eps=EPS)
    rate = torch.zeros((), device=device) if device == "cuda" else 0.0
    oracle = torch.optim.Adam(
        theirs, lr=rate, betas=BETAS, eps=EPS, fused=True, capturable=device == "cuda"
    )
    source = torch.Generator().manual_seed(1)
    for update in range(1, 30):
        rate = 0.1 / update
        for groups in (adam.param_groups, oracle.param_groups):
            if isinstance(groups[0]["lr"], torch.Tensor):
                groups[0]["lr"].fill_(rate)
            else:
                groups[0]["lr"] = rate
        adam.zero_grad()
        oracle.zero_grad()
        for mine, other in zip(own[:-1], theirs[:-1], strict=True):
            assert mine.grad is None
            gradient = torch.randn(mine.shape, generator=source, dtype=dtype).to(device)
            mine.grad, other.grad = gradient, gradient.clone()
        adam.step()
        oracle.step()
    for mine, other in zip(own, theirs, strict=True):
        assert torch.equal(mine, other)
        assert adam.state[mine].keys() == oracle.state[other].keys()
        for key, value in adam.state[mine].items():
            assert torch.equal(value, oracle.state[other][key])
            assert value.dtype == oracle.state[other][key].dtype


def test_a_trial_loads_no_compiler() -> None:
    code = """
import sys
from pathlib import Path
from tempfile import mkdtemp
from pernn.lab.runs import RunSpec, execute
for core in ("elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"):
    execute(
        RunSpec.load({
            "task": {"kind": "reverse_ordering", "vocab_size": 16, "length": 4},
            "core": {"kind": core, "hidden_size": 8},
            "encoding": {"kind": "sinusoidal", "size": 8},
            "embedding_size": 8,
            "training": {"batch_size": 4, "iterations": 3},
        }),
        Path(mkdtemp()),
        device="cpu",
    )
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
