"""Packs: networks trained side by side end where they end alone."""

from itertools import product

import numpy as np
import pytest
import torch

from pernn.errors import TrialError
from pernn.kernels import find_kernels, without_kernels
from pernn.models import PositionEncodedRNN
from pernn.runs import RunSpec, Trial, build
from pernn.training import (
    Event,
    Measured,
    TrainState,
    advance,
    advance_pack,
    computing,
)
from pernn.training.update import RecordedUpdate
from training.test_loop import SPEC
from training.test_update import Recorder, equal, rate_as_tensor

CPU = torch.device("cpu")
SEEDS = (1, 2, 3)
# A width that the compiled kernels take.
WIDE = SPEC.override({"core.hidden_size": 16, "embedding_size": 16, "training.batch_size": 6})
TASKS = {
    "reverse_ordering": {},
    "variable_length": {
        "task": {
            "kind": "variable_length",
            "vocab_size": 4,
            "shortest": 3,
            "length": 5,
            "num_held_out": 32,
        }
    },
    "infinite_vocabulary": {
        "task": {"kind": "infinite_vocabulary", "dimension": 3, "length": 4, "num_held_out": 32}
    },
}


def make(spec: RunSpec, seeds: tuple[int, ...] = SEEDS) -> list[tuple[Trial, TrainState]]:
    trials = [build(spec.override({"seed": seed}), CPU) for seed in seeds]
    return [(trial, TrainState.fresh(trial.model, trial.protocol)) for trial in trials]


def run_pack(spec: RunSpec, members: list[tuple[Trial, TrainState]]) -> list[list[Event]]:
    heard: list[list[Event]] = [[] for _ in members]
    pack = [(state, trial.stream) for trial, state in members]
    with computing(spec.training.precision, CPU):
        for number, event in advance_pack(pack, spec.training, members[0][0].protocol, CPU):
            heard[number].append(event)
    return heard


def run_alone(spec: RunSpec, trial: Trial, state: TrainState) -> list[Event]:
    with computing(spec.training.precision, CPU):
        return list(advance(state, trial.stream, spec.training, trial.protocol, CPU))


def check(spec: RunSpec) -> None:
    pack, lone = make(spec), make(spec)
    heard = run_pack(spec, pack)
    for (_, state), (trial, single), events in zip(pack, lone, heard, strict=True):
        assert run_alone(spec, trial, single) == events
        assert equal(state, single)


@pytest.mark.skipif(find_kernels() is None, reason="needs compiled kernels")
@pytest.mark.parametrize(
    ("core", "layers", "precision"),
    [*product(["elman", "gru", "lstm"], [1, 2], ["fp32"]), ("lstm", 1, "bf16")],
)
def test_kernels_give_each_member_the_bits_that_it_has_alone(
    core: str, layers: int, precision: str
) -> None:
    changes = {"core.kind": core, "core.num_layers": layers, "training.precision": precision}
    check(WIDE.override(changes))


@pytest.mark.parametrize("core", ["elman", "gru", "lstm", "s4d"])
@pytest.mark.parametrize("task", TASKS)
def test_so_does_plain_pytorch_on_the_processor(core: str, task: str) -> None:
    spec = SPEC.override({"core.kind": core, "core.hidden_size": 12})
    with without_kernels():
        check(RunSpec.load({**spec.dump(), **TASKS[task]}))


def test_a_pack_resumes_where_it_was() -> None:
    lone, cut = make(WIDE), make(WIDE)
    run_pack(WIDE, lone)
    early = WIDE.override({"training.iterations": 7})
    pack = [(state, trial.stream) for trial, state in cut]
    for number, _ in advance_pack(pack, WIDE.training, cut[0][0].protocol, CPU):
        if number == len(cut) - 1 and cut[-1][1].update == early.training.iterations:
            break
    again = make(WIDE)
    for (_, state), (_, old) in zip(again, cut, strict=True):
        state.restore({n: v.copy() for n, v in old.dump().items()}, old.update)
    run_pack(WIDE, again)
    for (_, one), (_, other) in zip(again, lone, strict=True):
        assert equal(one, other)


def test_a_member_that_fails_leaves_the_others_alone() -> None:
    pack, lone = make(WIDE), make(WIDE, (SEEDS[0], SEEDS[2]))
    broken = pack[1][0].model
    assert isinstance(broken, PositionEncodedRNN)
    with torch.no_grad():
        broken.readout.bias[0] = torch.inf
    found = run_pack(WIDE, pack)
    assert [type(events[-1]) is TrialError for events in found] == [False, True, False]
    assert pack[1][1].update == WIDE.training.log_interval
    for (_, state), (trial, single) in zip(pack[::2], lone, strict=True):
        run_alone(WIDE, trial, single)
        assert equal(state, single)
    assert any(isinstance(event, Measured) for event in found[2])


def test_a_recorded_pack_ends_in_the_same_bits() -> None:
    recorder, written = Recorder(), make(WIDE)
    recorded = make(WIDE)
    for _, state in (*written, *recorded):
        rate_as_tensor(state)
    run_pack(WIDE, written)
    states = [state for _, state in recorded]
    update = RecordedUpdate(states, WIDE.training, recorded[0][0].protocol, CPU, recorder)
    for step in range(WIDE.training.iterations):
        update([trial.stream.train(step, 6) for trial, _ in recorded])
        if (step + 1) % WIDE.training.log_interval == 0:
            for state in states:
                state.sums.zero_()
    for (_, one), (_, other) in zip(written, recorded, strict=True):
        other.sums.zero_()
        assert equal(one, other)
    assert (recorder.recorded, recorder.repeated) == (1, WIDE.training.iterations)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("core", ["elman", "gru", "lstm", "s4d"])
def test_a_pack_on_a_gpu_ends_close_to_its_members(core: str) -> None:
    device = torch.device("cuda")
    spec = WIDE.override({"core.kind": core})
    states = {}
    for alone in (True, False):
        trials = [build(spec.override({"seed": seed}), device) for seed in SEEDS]
        found = [TrainState.fresh(trial.model, trial.protocol) for trial in trials]
        pairs = [(s, t.stream) for s, t in zip(found, trials, strict=True)]
        packs = [[pair] for pair in pairs] if alone else [pairs]
        for pack in packs:
            for _ in advance_pack(pack, spec.training, trials[0].protocol, device):
                pass
        states[alone] = [state.dump() for state in found]
    for one, other in zip(states[True], states[False], strict=True):
        for name, value in one.items():
            np.testing.assert_allclose(value, other[name], rtol=1e-3, atol=1e-4, err_msg=name)
