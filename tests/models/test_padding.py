"""Sequences of several lengths in one batch: as if each ran alone, without padding."""

import pytest
import torch

from pernn import PositionEncodedRNN
from pernn.lab.cores import CORES
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.lab.tasks import VariableLengthConfig

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
@pytest.mark.parametrize("core", CORES.names())
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
