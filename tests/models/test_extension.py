"""A grown vocabulary: what was learnt stays, bit by bit; the new rows alone learn."""

import pytest
import torch

from oracle import PlainRNN
from pernn.lab.cores import CORES
from pernn.lab.training import PRESETS, TrainState
from pernn.models import PositionEncodedRNN, extend_vocabulary

SIZES = {"embedding_size": 6, "hidden_size": 6, "num_positions": 20}


def grown(core="gru", encoding="sinusoidal", rows=1):
    generator = torch.Generator().manual_seed(1)
    model = PositionEncodedRNN(5, core, encoding, num_extra_rows=rows, generator=generator, **SIZES)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    extend_vocabulary(model, 8, generator)
    return model, before


def learn(model, updates=5):
    state = TrainState.fresh(model, PRESETS["as-run"])
    state.optimizer.rate = 0.1
    for _ in range(updates):
        state.optimizer.zero_grad()
        model(torch.tensor([[0, 7, 5, 3]]), 4).square().mean().backward()
        state.optimizer.step()
    return state


def same_bits(left, right):
    return torch.equal(left.view(torch.int32), right.view(torch.int32))


@pytest.mark.parametrize("core", CORES.names())
@pytest.mark.parametrize("encoding", ["none", "sinusoidal", "learned", "repeated_embedding"])
def test_all_but_the_new_rows_stays_bit_by_bit(core, encoding):
    # Two rows behind the ids: the query's and a sign's, which move.
    model, before = grown(core, encoding, rows=2)
    new = model.embedding.weight[5:8].clone(), model.output_layer.weight[5:].clone()
    learn(model)
    assert same_bits(model.embedding.weight[:5], before["embedding.weight"][:5])
    assert same_bits(model.embedding.weight[8:], before["embedding.weight"][5:])
    assert same_bits(model.output_layer.weight[:5], before["output_layer.weight"])
    assert same_bits(model.output_layer.bias[:5], before["output_layer.bias"])
    after = model.state_dict()
    rest = [name for name in before if not name.startswith(("embedding.", "output_layer."))]
    assert rest
    for name in rest:
        assert same_bits(after[name], before[name]), name
    assert not torch.equal(model.embedding.weight[5:8], new[0])
    assert not torch.equal(model.output_layer.weight[5:], new[1])


def test_a_second_extension_keeps_what_the_first_one_learnt():
    model, _ = grown()
    learn(model)
    known = model.embedding.weight.clone(), model.output_layer.weight.clone()
    extend_vocabulary(model, 10)
    assert model.num_parameters == 2 * (6 + 6 + 1)
    learn(model)
    assert same_bits(model.embedding.weight[:8], known[0][:8])
    assert same_bits(model.embedding.weight[10:], known[0][8:])
    assert same_bits(model.output_layer.weight[:8], known[1])


def test_a_checkpoint_holds_the_frozen_rows():
    model, _ = grown("gru")
    state = learn(model)
    other, _ = grown("gru")
    twin = TrainState.fresh(other, PRESETS["as-run"])
    twin.restore(state.dump(), 5)
    assert torch.equal(other.embedding.weight, model.embedding.weight)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_new_rows_are_of_the_type_of_the_old(dtype):
    model = PositionEncodedRNN(5, **SIZES).to(dtype)
    extend_vocabulary(model, 8)
    assert model(torch.tensor([[0, 7]]), 2).dtype == dtype
    assert model.embedding.weight.dtype == dtype


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_logits_of_known_ids_are_what_they_were(rows):
    model, before = grown(rows=rows)
    twin = PositionEncodedRNN(5, "gru", "sinusoidal", num_extra_rows=rows, **SIZES)
    twin.load_state_dict(before)
    tokens, queries = torch.tensor([[4, 0, 3, 2]]), 4 if rows else 0
    grown_logits, logits = model(tokens, queries), twin(tokens, queries)
    assert grown_logits.shape[-1] == 8
    torch.testing.assert_close(grown_logits[..., :5], logits)


def test_the_oracle_agrees():
    model, _ = grown("lstm")
    tokens = torch.tensor([[4, 7, 3], [6, 0, 5]])
    torch.testing.assert_close(PlainRNN(model)(tokens, 3), model(tokens, 3))
