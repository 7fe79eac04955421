"""Sequences of several lengths in one batch: as if each ran alone, without padding."""

import numpy as np
import pytest
import torch

from pernn import PositionEncodedRNN
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.lab.tasks import VariableLengthConfig
from pernn.lab.training.evaluation import predict
from pernn.lab.training.objective import losses

CORES = ["elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"]
TASK = VariableLengthConfig(vocab_size=9, length=7, min_length=3, num_held_out=12).build()


def network(core, encoding="sinusoidal"):
    return PositionEncodedRNN(
        TASK.vocab_size,
        core,
        encoding,
        embedding_size=6,
        hidden_size=5,
        num_positions=TASK.num_steps,
        num_extra_rows=len(TASK.extra_rows),
        generator=torch.Generator().manual_seed(1),
    ).double()


def alone(batch):
    """Return each sequence as a batch of its own: inputs, then queries, nothing else."""
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        inputs, answers = tokens[tokens < TASK.vocab_size], targets[targets != UNSCORED]
        assert answers.tolist() == inputs[::-1].tolist()
        yield Batch(inputs[None], len(inputs), answers[None])


def read(model, tokens, num_queries=0, **options):
    """Return logits; unlike a call this may be shown the query's row among the tokens."""
    return model.output_layer(model.states(torch.from_numpy(tokens), num_queries, **options))


def loss_and_gradients(model, batch):
    model.zero_grad()
    targets = torch.from_numpy(batch.targets)
    logits = read(model, batch.tokens, batch.num_queries, num_scored=targets.shape[1])
    # As training does, but in double precision.
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    return {"loss": loss.detach(), **{n: p.grad.clone() for n, p in model.named_parameters()}}


@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "learned"])
@pytest.mark.parametrize("core", CORES)
def test_loss_and_gradients_are_those_of_each_sequence_alone(core, encoding):
    model = network(core, encoding)
    batch = TASK.stream(1).train(0, 12)
    assert len({*(batch.tokens[:, :7] < 9).sum(axis=1)}) > 3
    found = loss_and_gradients(model, batch)
    total = (batch.targets != UNSCORED).sum()
    expected = {name: torch.zeros_like(value) for name, value in found.items()}
    for one in alone(batch):
        share = one.targets.size / total
        for name, value in loss_and_gradients(model, one).items():
            expected[name] += share * value
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-11, msg=name)


@pytest.mark.parametrize("core", CORES)
def test_accuracies_by_length_are_those_of_each_sequence_alone(core):
    model, stream, cpu = network(core), TASK.stream(2), torch.device("cpu")
    test = stream.test()
    measured = stream.measure(predict(model, test, cpu))
    right = {}
    for one in alone(test):
        logits = model(torch.from_numpy(one.tokens), one.num_queries)
        said = logits.argmax(dim=2).numpy() == one.targets
        right.setdefault(one.targets.size, []).append(said.mean())
    table = measured.tables["by_length"]
    assert table["length"] == sorted(right) == [3, 4, 5, 6, 7]
    assert table["num_sequences"] == [12] * 5
    np.testing.assert_allclose(table["token_accuracy"], [np.mean(right[n]) for n in sorted(right)])
    answers = [value for n in right for value in np.array(right[n]) * n]
    whole = sum(answers) / sum(12 * n for n in right)
    assert measured.metrics["token_accuracy"] == pytest.approx(whole)


@pytest.mark.parametrize("core", CORES)
def test_reading_out_only_what_is_scored_changes_nothing(core):
    model = network(core)
    batch = TASK.stream(1).train(0, 12)
    tokens, targets = batch.tokens, torch.from_numpy(batch.targets)
    mask = targets != UNSCORED
    whole = read(model, tokens, num_scored=targets.shape[1])
    rows = read(model, tokens, num_scored=targets.shape[1], scored=mask)
    torch.testing.assert_close(rows, whole[mask])
    torch.testing.assert_close(losses(rows, targets[mask]), losses(whole, targets)[mask])
