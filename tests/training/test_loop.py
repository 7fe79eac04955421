"""The loop against a plain script, and cut at every step."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from oracle import PlainRNN
from pernn.errors import CorruptError, TrialError
from pernn.lab.cores import CORES
from pernn.lab.runs import RunSpec, Trial, build
from pernn.lab.training import Event, Precision, TrainState, advance, computing, evaluate
from tiny import tiny

CPU = torch.device("cpu")
SPEC = tiny(
    "reverse_ordering",
    "gru",
    hidden_size=12,
    vocab_size=4,
    length=5,
    training={
        "batch_size": 8,
        "learning_rate": 0.01,
        "warmup_updates": 3,
        "log_interval": 5,
        "evaluation_interval": 6,
    },
)


def start(spec: RunSpec = SPEC) -> tuple[Trial, TrainState]:
    trial = build(spec, CPU)
    return trial, TrainState.fresh(trial.model, trial.preset, spec.training.optimizer)


def events(trial: Trial, state: TrainState, spec: RunSpec = SPEC) -> list[Event]:
    return list(advance(state, trial.stream, spec.training, trial.preset, CPU))


def equal(one: TrainState, other: TrainState) -> bool:
    left, right = one.dump(), other.dump()
    return left.keys() == right.keys() and all(np.array_equal(left[n], right[n]) for n in left)


@pytest.mark.parametrize("core", CORES.names())
@pytest.mark.parametrize("preset", ["as-run", "as-written"])
def test_equals_a_plain_script(core: str, preset: str) -> None:
    spec = SPEC.override({"core.kind": core, "core.hidden_size": 12, "preset": preset})
    trial, state = start(spec)
    plain = PlainRNN(trial.model)
    betas, eps = ((0.9, 0.98), 1e-9) if preset == "as-run" else ((0.9, 0.999), 1e-8)
    adam = torch.optim.Adam(plain.parameters(), betas=betas, eps=eps, foreach=False)
    losses = []
    for step in range(spec.training.iterations):
        batch = trial.stream.train(step, 8)
        rate = 0.01 * (step / 3 if step < 3 else (1 + math.cos(math.pi * (step - 3) / 12)) / 2)
        adam.param_groups[0]["lr"] = rate
        logits = plain(torch.from_numpy(batch.tokens), 5)
        loss = F.cross_entropy(logits.transpose(1, 2), torch.from_numpy(batch.targets))
        adam.zero_grad()
        loss.backward()
        if preset == "as-run":
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        adam.step()
        losses.append(loss.item())
    logged = [e.values["loss"] for e in events(trial, state, spec) if e.kind == "train"]
    expected = [np.mean(losses[:5]), np.mean(losses[5:10]), np.mean(losses[10:])]
    assert logged == pytest.approx(expected, rel=1e-5)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(trial.model.state_dict()[name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        *({"core.kind": core} for core in CORES.names()),
        *({"training.optimizer": kind} for kind in ("adam_0.999", "sgd", "sign")),
        *({"training.encoding_schedule": when} for when in ("early", "late", "withdrawn")),
        {"training.encoding_schedule": "withdrawn", "core.kind": "s4d"},  # no whole updates
    ],
    ids=str,
)
def test_cut_at_every_step_and_resumed_gives_the_same_bits(changes: dict[str, str]) -> None:
    spec = SPEC.override(changes)
    trial, whole = start(spec)
    expected = events(trial, whole, spec)
    for cut in range(1, SPEC.training.iterations):
        trial, state = start(spec)
        heard: list[Event] = []
        for event in advance(state, trial.stream, spec.training, trial.preset, CPU):
            heard.append(event)
            if event == Event(cut, "update"):
                break
        saved = {name: array.copy() for name, array in state.dump().items()}
        trial, state = start(spec)
        state.restore(saved, cut)
        heard += events(trial, state, spec)
        assert heard == expected
        assert equal(state, whole), cut


def test_events_come_when_they_are_due_and_a_loss_that_is_no_number_ends_the_trial() -> None:
    found: dict[str, list[int]] = {}
    for event in events(*start()):
        found.setdefault(event.kind, []).append(event.update)
    expected = {"train": [5, 10, 12], "test": [6], "checkpoint": [4, 8, 12]}
    assert found == expected | {"update": [*range(1, 13)]}
    trial, state = start()
    with torch.no_grad():
        trial.model.output_layer.bias[0] = math.nan
    with pytest.raises(TrialError, match=r"nan within updates 1–5: lower"):
        events(trial, state)


@pytest.mark.parametrize("change", ["missing", "extra", "shape"])
def test_checkpoints_of_another_model_are_refused(change: str) -> None:
    trial, state = start()
    events(trial, state)
    arrays = state.dump()
    if change == "missing":
        del arrays["model.output_layer.bias"]
    elif change == "shape":
        arrays["model.output_layer.bias"] = np.zeros(1, np.float32)
    else:
        arrays["model.more"] = np.zeros(1, np.float32)
    with pytest.raises(CorruptError, match="does not fit the model"):
        start()[1].restore(arrays, 12)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_learns(precision: Precision) -> None:
    spec = SPEC.override(
        {
            "training.precision": precision,
            "task.length": 4,
            "training.iterations": 400,
            "training.batch_size": 32,
            "core.hidden_size": 32,
            "training.checkpoint_interval": 400,
        }
    )
    trial, state = start(spec)
    with computing(precision, CPU):
        events(trial, state, spec)
        metrics = evaluate(trial.model, trial.stream, CPU, precision).metrics
    assert metrics["token_accuracy"] > 0.9
    assert metrics["sequence_accuracy"] <= metrics["token_accuracy"]
