"""Our optimisers: the numbers of PyTorch's own, without what PyTorch's own load."""

import json

import pytest
import torch
from torch import nn

from command_line import python
from pernn.lab.runs import build, execute, load_model
from pernn.lab.training.state import FusedAdam, Momentum
from training.test_loop import SPEC

BETAS, EPS = (0.9, 0.98), 1e-9
each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


def parameters(device: str, dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    source = torch.Generator().manual_seed(0)
    shapes = [(7, 5), (5,), (3, 2, 2), (1,)]
    values = [torch.randn(shape, generator=source, dtype=dtype) for shape in shapes]
    # The last one never gets a gradient.
    return [nn.Parameter(value.to(device)) for value in values]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@each_device
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
        (group,) = oracle.param_groups
        if isinstance(adam.rate, torch.Tensor):
            adam.rate.fill_(rate)
            group["lr"].fill_(rate)
        else:
            adam.rate = group["lr"] = rate
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


@each_device
def test_momentum_is_that_of_pytorch_and_signs_are_those_of_its_buffer(device: str) -> None:
    own, signed, theirs = (parameters(device, torch.float64) for _ in range(3))
    plain, signs = Momentum(own), Momentum(signed, takes_signs=True)
    oracle = torch.optim.SGD(theirs, lr=0.1, momentum=0.9)
    source = torch.Generator().manual_seed(1)
    expected = [parameter.detach().clone() for parameter in signed]
    for optimizer in (plain, signs):
        optimizer.rate = 0.1
    for _ in range(30):
        for mine, other, third in zip(own[:-1], theirs[:-1], signed[:-1], strict=True):
            gradient = torch.randn(mine.shape, generator=source, dtype=torch.float64).to(device)
            mine.grad, other.grad, third.grad = gradient, gradient.clone(), gradient.clone()
        plain.step()
        signs.step()
        oracle.step()
        for place, other in zip(expected[:-1], theirs[:-1], strict=True):
            place -= 0.1 * oracle.state[other]["momentum_buffer"].sign()
    for mine, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(mine, other)
        assert plain.state[mine].keys() == oracle.state[other].keys()
    for third, place in zip(signed, expected, strict=True):
        torch.testing.assert_close(third.data, place)


def test_frozen_vectors_stay_and_everything_else_is_trained(tmp_path) -> None:
    spec = SPEC.override({"training.frozen_embedding": True})
    before = build(spec, torch.device("cpu")).model
    execute(spec, tmp_path, device="cpu")
    after = load_model(tmp_path / "runs" / spec.fingerprint())
    same = {
        name
        for name, values in after.state_dict().items()
        if torch.equal(values, before.state_dict()[name])
    }
    assert {name for name, _ in after.named_parameters()} & same == {"embedding.weight"}
    assert before.num_parameters == sum(
        values.numel() for name, values in before.named_parameters() if "embedding" not in name
    )


def test_a_trial_loads_no_compiler() -> None:
    code = """
import json, sys
from pathlib import Path
from tempfile import mkdtemp
from pernn.kernels import has_whole_updates
from pernn.lab.runs import RunSpec, build, execute, load_model
for core in ("elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"):
    spec = RunSpec.load({**json.loads(sys.argv[1]), "core": {"kind": core, "hidden_size": 8}})
    execute(spec, Path(mkdtemp()), device="cpu")
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""
    found = python("-c", code, json.dumps(SPEC.dump()))
    assert found.stdout.strip() == "[]", found.stderr
