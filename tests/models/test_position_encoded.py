"""What networks are made of: their weights, their queries, an encoding before a layer."""

import pytest
import torch
from torch import nn

from models.test_laws import BATCH, HIDDEN, QUERIES, TIME, build, draw
from pernn import LSTM, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.lab.cores import CORES
from pernn.models import VectorRNN


def test_of_rows_and_tokens_the_fewer_are_projected():
    counts = [
        len(build(vocab_size=k).prepare(draw(k, BATCH, TIME), QUERIES).table) for k in (11, 20)
    ]
    # 11 + 1 rows for 12 tokens; of more ids every token, and the query.
    assert counts == [12, BATCH * TIME + 1]


@pytest.mark.parametrize(
    ("core", "vocab_size", "vanilla", "encoded"),
    [
        ("gru", 64, 1_642_048, 2_428_480),
        ("lstm", 1024, 3_151_360, 4_199_936),
        ("lstm", 16_384, 18_895_360, 19_943_936),
        ("s4d", 2048, 2_954_240, 3_216_384),
    ],
)
def test_parameter_counts_of_the_paper(core, vocab_size, vanilla, encoded):
    assert PositionEncodedRNN(vocab_size, core, "none").num_parameters == vanilla
    assert PositionEncodedRNN(vocab_size, core, "sinusoidal").num_parameters == encoded
    # The parameter-matched control.
    assert PositionEncodedRNN(vocab_size, core, "repeated_embedding").num_parameters == encoded


def test_a_learned_code_adds_its_table_a_row_its_width_and_weights_begin_as_described(generator):
    def count(encoding="sinusoidal", **options):
        sizes = {"embedding_size": 8, "hidden_size": 8}
        return PositionEncodedRNN(9, "gru", encoding, **sizes, **options).num_parameters

    assert count("learned", num_positions=20) - count() == 20 * 8
    assert [count(num_extra_rows=rows) - count() for rows in (0, 1, 2)] == [-8, 0, 8]
    sizes = {"embedding_size": 512, "hidden_size": 64}
    model = PositionEncodedRNN(500, "gru", generator=generator, **sizes)
    assert abs(model.embedding.weight.std() - 1) < 0.01
    assert abs(model.embedding.weight.mean()) < 0.01
    for parameter in model.output_layer.parameters():
        assert 0.9 / 8 < parameter.abs().max() <= 1 / 8
    for parameter in build("vector", vocab_size=3).embedding.parameters():
        assert 0 < parameter.abs().max() <= 3**-0.5


@pytest.mark.parametrize("core", CORES.names())
def test_the_query_is_a_row_that_queries_alone_train(core):
    model, tokens = build(core=core, vocab_size=7).double(), draw(7, BATCH, TIME)
    shown = torch.cat([tokens, torch.full((BATCH, QUERIES), 7)], dim=1)
    by_token = model.states(shown, num_scored=QUERIES)
    torch.testing.assert_close(model.states(tokens, QUERIES), by_token)
    model(draw(7, BATCH, TIME), QUERIES).sum().backward()
    assert model.embedding.weight.grad[7].any()
    model.zero_grad()
    model(draw(7, BATCH, TIME)).sum().backward()
    assert not model.embedding.weight.grad[7].any()


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_a_layer_of_pytorch_and_ours_give_the_same(batch_first, batched, generator):
    encoding, ours = Sinusoidal(4), LSTM(10, HIDDEN, generator=generator, batch_first=batch_first)
    theirs = nn.LSTM(10, HIDDEN, batch_first=batch_first)
    theirs.load_state_dict(ours.state_dict())
    vectors = torch.randn(BATCH, TIME, 6, generator=generator)
    state = tuple(torch.randn(1, BATCH, HIDDEN, generator=generator) for _ in range(2))
    joined = torch.cat([vectors, encoding(TIME).expand(BATCH, -1, -1)], dim=2)
    if not batched:
        vectors, joined, state = vectors[1], joined[1], tuple(part[:, 1] for part in state)
    elif not batch_first:
        vectors, joined = vectors.transpose(0, 1), joined.transpose(0, 1)
    expected = theirs(joined, state)
    for layer in (ours, theirs):
        *found, position = PositionEncoded(layer, encoding)(vectors, state, position_offset=0)
        torch.testing.assert_close(tuple(found), expected)
        assert position == TIME


@pytest.mark.parametrize(
    ("encoding", "columns"), [("none", 16), ("sinusoidal", 32), ("repeated_embedding", 32)]
)
def test_parameters_for_vectors_are_two_linear_maps_and_a_core(encoding, columns):
    model = VectorRNN(8, "gru", encoding, embedding_size=16, hidden_size=10)
    core = 3 * 10 * (columns + 10 + 2)
    assert model.num_parameters == (8 * 16 + 16) + core + (10 * 8 + 8)
