"""Embedding rows beside those of the ids: none, the query's, the query's and more."""

import pytest
import torch
from torch.nn import functional as F

from pairs import pairwise
from pernn import PositionEncodedRNN
from pernn.errors import ConfigError
from pernn.lab.tasks import TASKS
from pernn.models import PlainRNN

# Networks of another class have tests of their own; language modelling needs a corpus.
ELSEWHERE = {"autoregressive", "coded_reversal", "infinite_vocabulary", "language_modelling"}
KINDS = [kind for kind in TASKS.names() if kind not in ELSEWHERE]
SIZES = {"embedding_size": 6, "hidden_size": 5}


def build(task, core="lstm", encoding="sinusoidal"):
    return PositionEncodedRNN(
        task.vocab_size,
        core,
        encoding,
        num_positions=task.num_steps,
        num_extra_rows=len(task.extra_rows),
        generator=torch.Generator().manual_seed(1),
        **SIZES,
    ).double()


def small(kind, vocab_size):
    config = {"kind": kind, "vocab_size": vocab_size, "length": 4, "num_held_out": 5}
    if kind == "variable_length":
        config["min_length"] = 2
    if kind == "vocabulary_extension":
        config["num_known"] = 2
    if kind == "dual_frequency":
        # Its ids come in two halves, its test sequences by the cell.
        del config["num_held_out"]
        config |= {"vocab_size": 2 * ((vocab_size + 1) // 2), "num_per_cell": 1, "rare_share": 0.5}
    return TASKS.validate(config).build()


def measured(model, batch):
    targets = torch.from_numpy(batch.targets)
    run = model if isinstance(model, PlainRNN) else model.states
    logits = run(torch.from_numpy(batch.tokens), batch.num_queries, num_scored=targets.shape[1])
    logits = logits if run is model else model.output_layer(logits)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    gradients = {name.replace("core.", ""): p.grad for name, p in model.named_parameters()}
    return {"logits": logits, "loss": loss, **gradients}


@pairwise(
    kind=KINDS,
    core=["elman", "gru", "lstm"],
    encoding=["none", "sinusoidal", "learned", "repeated_embedding"],
    # Of 5 ids every row is projected, of 500 only those that occur.
    vocab_size=[5, 500],
)
def test_the_folded_path_equals_the_plain_one(kind, core, encoding, vocab_size):
    task = small(kind, vocab_size)
    model, batch = build(task, core, encoding), task.stream(1).train(0, 3)
    found, expected = (measured(m, batch) for m in (model, PlainRNN(model)))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert value is not None, name
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-12, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_row_that_no_batch_trains(kind):
    task = small(kind, 5)
    model = build(task)
    assert len(model.embedding.weight) == task.vocab_size + len(task.extra_rows)
    measured(model, task.stream(1).train(0, 64))
    assert model.embedding.weight.grad.any(dim=1).all()


@pytest.mark.parametrize("num_extra_rows", [0, 1, 2])
def test_each_row_costs_its_width(num_extra_rows):
    none, some = (
        PositionEncodedRNN(9, "gru", num_extra_rows=number, **SIZES).num_parameters
        for number in (0, num_extra_rows)
    )
    assert some - none == num_extra_rows * 6
    assert PositionEncodedRNN(9, "gru", **SIZES).num_parameters == none + 6


def test_emit_is_the_query_and_hold_a_token():
    task = small("copying_memory", 5)
    model = build(task)
    batch = task.stream(1).train(0, 2)
    by_query = model.states(torch.from_numpy(batch.tokens), batch.num_queries)
    # The same network, asked by EMIT as a token.
    emits = torch.full((2, 4), 5)
    by_token = model.states(torch.cat([torch.from_numpy(batch.tokens), emits], dim=1), num_scored=4)
    torch.testing.assert_close(by_query, by_token)


@pytest.mark.parametrize("vocab_size", [5, 500])
def test_a_query_without_its_row_is_refused(vocab_size):
    model = PositionEncodedRNN(vocab_size, "gru", num_extra_rows=0, **SIZES)
    tokens = torch.zeros(1, 300, dtype=torch.int64)
    assert model(tokens).shape == (1, 300, vocab_size)
    with pytest.raises(ConfigError, match="2 queries, but the embedding has no query row"):
        model(tokens, 2)


def test_fewer_than_no_rows_are_refused():
    with pytest.raises(ConfigError, match="num_extra_rows must be at least 0, got -1"):
        PositionEncodedRNN(5, num_extra_rows=-1)
