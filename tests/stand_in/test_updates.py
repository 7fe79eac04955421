"""Whole updates and evaluations on a stand-in for a GPU: nothing in them that a GPU refuses."""

import itertools

import numpy as np
import pytest
import torch

from pairs import pairwise
from pernn.lab.runs import RunSpec, build
from pernn.lab.training import TrainState, evaluate
from pernn.lab.training.update import RecordedUpdate
from pernn.models import PositionEncodedRNN
from stand_in.device import META, RefusedError, stand_in
from tiny import tiny

pytestmark = pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter")
CORES = ("elman", "gru", "lstm", "s4d")
ENCODINGS = ("none", "sinusoidal", "learned", "random", "repeated_embedding")
TASKS = [
    "reverse_ordering", "sorting", "delayed_addition", "predecessor_query", "copying_memory",
    "variable_length", "dual_frequency", "autoregressive", "infinite_vocabulary",
    "vocabulary_extension",
]  # fmt: skip
OPTIONS = {"copying_memory": {"hold_time": 2}, "autoregressive": {"rule": "sort"}}
PRECISIONS = ("fp32", "tf32", "bf16")


def make_spec(core, encoding, task, precision, **training):
    options = OPTIONS.get(task, {})
    spec = tiny(task, core, training={"precision": precision, **training}, **options)
    return spec.override({"encoding.kind": encoding})


def factors_of(spec: RunSpec) -> set[torch.dtype]:
    factors = {torch.bfloat16 if spec.training.precision == "bf16" else torch.float32}
    return factors | ({torch.float32} if spec.core.kind == "s4d" else set())


def update_and_evaluate(patch: pytest.MonkeyPatch, spec: RunSpec) -> list[str]:
    """Train two updates, go through a checkpoint, evaluate; return what was recorded."""
    trial = build(spec, META)
    with stand_in(patch, factors_of(spec)) as mode:

        def capture(run):
            """Record as a CUDA graph does: what libraries and caches set up comes first."""
            run()
            return mode.recording()(run)

        state = TrainState.fresh(trial.model, trial.preset)
        update = RecordedUpdate(state, spec.training, trial.preset, META, capture)
        for step in range(2):
            update(trial.stream.train(step, spec.training.batch_size))
            mode.is_steady = True
        mode.is_steady = False  # checkpoints and evaluations may wait
        state.restore(state.dump(), state.update)
        found = evaluate(trial.model, trial.stream, META, spec.training.precision)
    assert all(np.isfinite(value) for value in found.metrics.values())
    assert mode.recorded.count("_fused_adam_") == 2
    return mode.recorded


@pairwise(core=CORES, encoding=ENCODINGS, task=TASKS, precision=PRECISIONS)
def test_nothing_that_a_gpu_refuses(monkeypatch, core, encoding, task, precision):
    recorded = update_and_evaluate(monkeypatch, make_spec(core, encoding, task, precision))
    assert len(recorded) > 100


def test_batches_in_pieces(monkeypatch):
    spec = make_spec("gru", "sinusoidal", "variable_length", "bf16", micro_batch=3)
    assert len(update_and_evaluate(monkeypatch, spec)) > 200


def multiply_in_float32(states):
    with torch.autocast(META.type, enabled=False):
        return states.float() @ torch.zeros(8, 8, device=META)


FAULTS = {
    "a CPU tensor": (lambda states: states + torch.zeros(8), "a tensor o[fn] cpu"),
    "an item": (lambda states: states * states.sum().item(), "waits for a number"),
    "a mask": (lambda states: states + states[states > 0].sum(), "a boolean mask counts"),
    "float64": (lambda states: (states.double() * 2).float(), "makes torch.float64"),
    "a product": (multiply_in_float32, "mm: factors of type torch.float32"),
}
"""What is done to the states of a network, and how it is refused."""


@pytest.mark.parametrize("kind", FAULTS)
def test_planted_faults_are_found(monkeypatch, kind):
    (fault, said), real, calls = FAULTS[kind], PositionEncodedRNN.states, itertools.count()

    def spoiled(*args, **more):
        states = real(*args, **more)
        # Not in the first call, in which everything is set up.
        return fault(states) if next(calls) else states

    monkeypatch.setattr(PositionEncodedRNN, "states", spoiled)
    spec = make_spec("gru", "none", "reverse_ordering", "bf16")
    with pytest.raises(RefusedError, match=said):
        update_and_evaluate(monkeypatch, spec)


def test_batches_must_come_from_pinned_memory(monkeypatch):
    unpinned = lambda array, device: torch.from_numpy(array).to(device)  # noqa: E731
    monkeypatch.setattr("pernn.lab.training.objective._move", unpinned)
    with pytest.raises(RefusedError, match="not pinned"):
        update_and_evaluate(monkeypatch, make_spec("gru", "none", "reverse_ordering", "fp32"))
