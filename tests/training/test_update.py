"""Recorded updates: the same bits as updates that run as they are written."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from pernn.interfaces import UNSCORED, Batch
from pernn.runs import RunSpec, build
from pernn.training import TrainState, advance
from pernn.training.update import RecordedUpdate, Update, make_update
from training.test_loop import SPEC, start

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
    for group in state.optimizer.param_groups:
        group["lr"] = torch.zeros(())


def equal(one: TrainState, other: TrainState) -> bool:
    left, right = one.dump(), other.dump()
    return left.keys() == right.keys() and all(np.array_equal(left[n], right[n]) for n in left)


@pytest.mark.parametrize("resumed", [0, 3])
@pytest.mark.parametrize("core", ["gru", "lstm", "s4d"])
def test_a_recording_ends_in_the_same_bits(core: str, resumed: int) -> None:
    spec = SPEC.override({"core.kind": core})
    recorder, states = Recorder(), []
    for way in ("written", "recorded"):
        trial, state = start(spec)
        config, preset = spec.training, trial.preset
        rate_as_tensor(state)
        first = Update(state, config, preset, CPU)
        for step in range(resumed):
            first(trial.stream.train(step, 8))
        later = first
        if way == "recorded":
            later = RecordedUpdate(state, config, preset, CPU, recorder)
        for step in range(resumed, 8):
            later(trial.stream.train(step, 8))
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


def test_the_processor_needs_no_recording() -> None:
    trial, state = start()
    assert type(make_update(state, SPEC.training, trial.preset, CPU)) is Update


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
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


@pytest.mark.parametrize("core", ["elman", "gru", "lstm", "s4d"])
def test_a_hook_on_the_core_hears_of_every_batch(core: str) -> None:
    trial, state = start(SPEC.override({"core.kind": core}))
    heard: list[tuple[int, ...]] = []
    trial.model.core.register_forward_hook(
        lambda core, inputs, outputs: heard.append(tuple(outputs[0].shape))
    )
    make_update(state, SPEC.training, trial.preset, CPU)(trial.stream.train(0, 8))
    assert heard == [(8, 5, 12)]
