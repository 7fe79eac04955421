"""Losses and evaluation: what is scored, what is fed back, what is padding."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from pernn import PositionEncodedRNN
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.lab.runs import build
from pernn.lab.training import decode, evaluate_diverged, predict
from pernn.lab.training.objective import losses
from pernn.models import AutoregressiveRNN
from tiny import tiny

CPU = torch.device("cpu")


def test_float64_outputs_are_not_rounded():
    # Logits that float32 cannot tell apart.
    logits = 1e4 + torch.tensor([[0.0, 1e-4]], dtype=torch.float64)
    expected = F.cross_entropy(logits, torch.tensor([1]))
    found = losses(logits, torch.tensor([1]))
    assert found.dtype == torch.float64
    assert float(found) == float(expected)
    narrow = losses(logits.bfloat16(), torch.tensor([1]))
    assert narrow.dtype == torch.float32


@pytest.mark.parametrize("chunk", [2, 256])
def test_padding_is_neither_answered_nor_counted(monkeypatch, chunk):
    monkeypatch.setattr("pernn.lab.training.objective.CHUNK_SIZE", chunk)
    model = PositionEncodedRNN(5, "gru", embedding_size=6, hidden_size=6)
    tokens = torch.randint(5, (4, 7)).numpy()
    targets = torch.randint(5, (4, 7)).numpy()
    targets[:2, 3:] = UNSCORED
    targets[2:, 5:] = UNSCORED
    targets[3, 0] = UNSCORED
    predictions = predict(model, Batch(tokens, 0, targets), CPU)
    logits = model(torch.from_numpy(tokens)).detach()
    scored = targets != UNSCORED
    assert (predictions.values[~scored] == UNSCORED).all()
    assert np.isnan(predictions.losses[~scored]).all()
    assert np.array_equal(predictions.values[scored], logits.argmax(2).numpy()[scored])
    expected = F.cross_entropy(logits[torch.from_numpy(scored)], torch.from_numpy(targets[scored]))
    assert np.nanmean(predictions.losses) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_few_outputs_at_a_time_where_the_vocabulary_is_large(monkeypatch, masked, generator):
    model = PositionEncodedRNN(5, "gru", embedding_size=6, hidden_size=6)
    read = []
    targets = torch.randint(5, (10, 4), generator=generator).numpy()
    if masked:
        targets[0, 1] = UNSCORED
    batch = Batch(torch.randint(5, (10, 4), generator=generator).numpy(), 4, targets)
    whole = predict(model, batch, CPU)

    def spy(rows, weight, bias):
        read.append(len(rows))
        return F.linear(rows, weight, bias)

    monkeypatch.setattr("pernn.lab.training.objective.linear", spy)
    monkeypatch.setattr("pernn.lab.training.objective.MAX_LOGITS", 3 * 4 * 5)
    parts = predict(model, batch, CPU)
    assert np.array_equal(whole.values, parts.values)
    np.testing.assert_allclose(whole.losses, parts.losses, rtol=1e-5)
    assert max(read) == 12
    assert sum(read) == 40 - masked


def test_a_decoder_sees_no_answer(monkeypatch):
    model = AutoregressiveRNN(5, "gru", embedding_size=6, hidden_size=6)
    tokens = np.array([[1, 2, 3, 5, 3, 2], [0, 4, 4, 5, 4, 4]])
    targets = np.array([[3, 2, 1], [4, 4, 0]])
    predictions = decode(model, Batch(tokens, 0, targets), CPU)
    tokens[:, 4:] = 0
    # One sequence at a time, as where the vocabulary is large.
    monkeypatch.setattr("pernn.lab.training.objective.MAX_LOGITS", 3 * 5)
    again = decode(model, Batch(tokens, 0, targets), CPU)
    assert np.array_equal(predictions.values, again.values)
    np.testing.assert_allclose(predictions.losses, again.losses, rtol=1e-5)


def test_vectors_of_a_diverged_network_cost_what_opposite_ones_do():
    trial = build(tiny("infinite_vocabulary"), CPU)
    targets = torch.from_numpy(trial.stream.test().targets)
    worst = losses(-targets, targets).mean().item()
    found = evaluate_diverged(trial.model, trial.stream).metrics["loss"]
    assert found == pytest.approx(worst) == pytest.approx(2.0)
