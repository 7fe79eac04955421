"""Forward passes on a fake `cuda` device: what a CUDA build of PyTorch says without a driver.

`make test-cuda-build` runs it; elsewhere it is skipped. Shapes and types are PyTorch's own there,
autocast included. The autograd engine refuses to run without a driver, so there is no backward
pass: test_updates.py has it, on `meta`, and the faults that `StandIn` must find.
"""

import itertools
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from pernn.lab.runs import build
from pernn.lab.training.devices import rounding
from pernn.lab.training.objective import DeviceBatch, batch_loss
from stand_in.device import StandIn
from stand_in.test_updates import CORES, ENCODINGS, PRECISIONS, TASKS, factors_of, make_spec

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
pytestmark = [
    pytest.mark.skipif(VERSION < (2, 13), reason="older versions (2.9 was tried) need a driver"),
    pytest.mark.skipif(torch.version.cuda is None, reason="PyTorch is not built for CUDA"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: no need to fake one"),
]
CUDA = torch.device("cuda", 0)
THREE = list(enumerate(PRECISIONS))


def run_forward(patch, spec):
    """Return loss and share of right answers of one batch on a fake device."""
    # Asked for their driver, these say no.
    patch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    patch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    trial = build(spec, torch.device("cpu"))
    shown = DeviceBatch.of(trial.stream.train(0, spec.training.batch_size), torch.device("cpu"))
    model = trial.model
    with FakeTensorMode() as mode, torch.no_grad(), StandIn(factors_of(spec), CUDA) as watch:
        for module in model.modules():
            for name, value in module._parameters.items():
                module._parameters[name] = nn.Parameter(mode.from_tensor(value).to(CUDA))
            for name, value in module._buffers.items():
                module._buffers[name] = mode.from_tensor(value).to(CUDA)
        moved = [mode.from_tensor(tensor).to(CUDA) for tensor in shown.tensors()]
        rows = moved[2] if shown.rows is not None else None
        on_device = DeviceBatch(*moved[:2], shown.num_queries, shown.num_scored, rows)
        for way in (nullcontext(), watch.recording()):  # tables are made at first
            with way, rounding(spec.training.precision, CUDA):
                assert torch.is_autocast_enabled("cuda") == (spec.training.precision == "bf16")
                found = batch_loss(model, on_device)
        return found


# Every core with every task and precision, and every core with every encoding.
CASES = {
    (core, task): [(ENCODINGS[(number + turn) % 5], precision) for turn, precision in THREE]
    for number, (core, task) in enumerate(itertools.product(CORES, TASKS))
}


@pytest.mark.parametrize(("core", "task"), CASES)
def test_forward_passes(monkeypatch, core, task):
    for encoding, precision in CASES[core, task]:
        loss, right = run_forward(monkeypatch, make_spec(core, encoding, task, precision))
        assert (loss.device, right.device) == (CUDA, CUDA)
        assert loss.dtype == right.dtype == torch.float32
