"""Recorded updates: the same bits as updates that run as they are written."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from pernn.errors import MachineError
from pernn.kernels import whole_updates
from pernn.lab.cores import CORES
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.lab.runs import RunSpec, build
from pernn.lab.training import TrainState, advance
from pernn.lab.training.objective import show
from pernn.lab.training.update import RecordedUpdate, Update, clip_gradients, make_update
from training.test_loop import SPEC, equal, start

CPU = torch.device("cpu")


class Recorder:
    """Stands for a CUDA graph: runs what is to be recorded, then repeats exactly that."""

    def __init__(self) -> None:
        self.recorded = self.repeated = 0

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        for _ in range(3):
            run()

        def repeat() -> None:
            self.repeated += 1
            run()

        return repeat


def rate_as_tensor(state: TrainState) -> None:
    """As on a GPU, where a recording reads the rate where it lies."""
    state.optimizer.rate = torch.zeros(())


@pytest.mark.parametrize(
    ("core", "resumed", "micro_batch"),
    [("gru", 0, None), ("gru", 3, 3), ("lstm", 3, None), ("s4d", 0, None)],
)
def test_a_recording_ends_in_the_same_bits(
    core: str, resumed: int, micro_batch: int | None
) -> None:
    spec = SPEC.override({"core.kind": core, "training.micro_batch": micro_batch})
    recorder, states = Recorder(), []
    for way in ("written", "recorded"):
        trial, state = start(spec)
        config, preset = spec.training, trial.preset
        rate_as_tensor(state)
        first = Update(state, config, preset, CPU)
        later = first
        if way == "recorded":
            later = RecordedUpdate(state, config, preset, CPU, recorder)
        # As on a GPU, where no update is whole.
        with whole_updates(enabled=False):
            for step in range(8):
                (first if step < resumed else later)(trial.stream.train(step, 8))
        states.append(state)
    assert equal(*states)
    assert states[0].update == states[1].update == 8
    assert (recorder.recorded, recorder.repeated) == (1, 8 - resumed)


def test_what_was_not_recorded_runs_as_it_is_written() -> None:
    trial, state = start()
    rate_as_tensor(state)
    recorder = Recorder()
    update = RecordedUpdate(state, SPEC.training, trial.preset, CPU, recorder)
    batch = trial.stream.train(0, 8)
    targets = batch.targets.copy()
    targets[0, 0] = UNSCORED
    ragged = Batch(batch.tokens, batch.num_queries, targets)
    update(ragged)
    assert recorder.recorded == 0
    update(batch)
    update(trial.stream.train(1, 5))
    update(ragged)
    assert (recorder.recorded, recorder.repeated) == (1, 1)
    assert state.update == 4
    assert np.isfinite(state.sums.numpy()).all()


RAGGED = {"task.kind": "variable_length", "task.min_length": 2, "task.num_held_out": 8}


@pytest.mark.parametrize("changes", [{}, RAGGED], ids=["whole", "ragged"])
def test_a_batch_in_pieces_has_the_same_gradients(changes: dict[str, object]) -> None:
    spec = SPEC.override(changes)
    found = []
    for micro_batch in (None, 3, 1):
        trial, state = start(spec)
        pieces = show(trial.stream.train(0, 8), CPU, micro_batch)
        assert len(pieces) == {None: 1, 3: 3, 1: 8}[micro_batch]
        Update(state, spec.training, trial.preset, CPU).run(pieces)
        found.append([state.sums, *(parameter.grad for parameter in state.optimizer.parameters)])
    for pieces in found[1:]:
        for whole, summed in zip(found[0], pieces, strict=True):
            torch.testing.assert_close(summed, whole, rtol=1e-4, atol=1e-6)


def test_sequences_without_a_target_add_nothing_and_a_processor_needs_no_recording() -> None:
    trial, _ = start()
    batch = trial.stream.train(0, 4)
    batch.targets[2:] = UNSCORED
    (piece,) = show(batch, CPU, 2)
    assert (piece.share, piece.targets.numel()) == (1.0, 10)
    trial, state = start()
    assert type(make_update(state, SPEC.training, trial.preset, CPU)) is Update


@pytest.mark.parametrize("way", ["at once", "while recording", "by the C library"])
def test_out_of_memory_says_what_to_change(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    trial, state = start()

    def run(self: Update, pieces: object) -> None:
        if way == "by the C library":
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")
        try:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        finally:
            if way == "while recording":
                raise RuntimeError("operation failed due to a previous error during capture")

    monkeypatch.setattr(Update, "step", run)
    with pytest.raises(MachineError, match=r"cpu: set training.micro_batch below 8 "):
        list(advance(state, trial.stream, SPEC.training, trial.preset, CPU))


@pytest.mark.gpu
@pytest.mark.parametrize("core", ["elman", "gru", "lstm", "s4d"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_cuda_graph_trains_as_updates_that_are_not_recorded(core: str, precision: str) -> None:
    device = torch.device("cuda")
    spec: RunSpec = SPEC.override({"core.kind": core, "training.precision": precision})
    states = []
    for recorded in (True, False):
        trial = build(spec, device)
        state = TrainState.fresh(trial.model, trial.preset)
        kind = RecordedUpdate if recorded else Update
        update = kind(state, spec.training, trial.preset, device)
        for step in range(8):
            update(trial.stream.train(step, 8))
        states.append(state)
    one, other = (state.dump() for state in states)
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-3, atol=1e-4, err_msg=name)
    for event in advance(states[0], trial.stream, spec.training, trial.preset, device):
        assert event is not None


@pytest.mark.parametrize("core", CORES.names())
def test_a_hook_on_the_core_hears_of_every_batch(core: str) -> None:
    trial, state = start(SPEC.override({"core.kind": core}))
    heard: list[tuple[int, ...]] = []
    trial.model.core.register_forward_hook(
        lambda core, inputs, outputs: heard.append(tuple(outputs[0].shape))
    )
    make_update(state, SPEC.training, trial.preset, CPU)(trial.stream.train(0, 8))
    assert heard == [(8, 5, 12)]


@pytest.mark.parametrize("limit", [1e-3, 0.5, math.inf])
def test_gradients_are_clipped_to_the_same_bits_as_by_torch(limit, generator):
    sides = []
    for clip in (clip_gradients, nn.utils.clip_grad_norm_):
        parameters = [nn.Parameter(torch.zeros(shape)) for shape in ((3, 5), (7,), (2, 2))]
        generator.manual_seed(1)
        for parameter in parameters[:2]:  # the last one has no gradient
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        sides.append([clip(parameters, limit), *(p.grad for p in parameters[:2])])
    for one, other in zip(*sides, strict=True):
        assert torch.equal(one, other)
