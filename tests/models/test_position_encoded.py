"""What networks are made of: their weights, their queries, an encoding before a layer."""

import pytest
import torch
from torch import nn

from models.test_laws import BATCH, HIDDEN, QUERIES, TIME, build, draw
from oracle import PlainRNN
from pernn import LSTM, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.lab.cores import CORES
from pernn.models import VectorRNN


def test_both_paths_meet_at_the_number_of_tokens(monkeypatch):
    rows = []
    for vocab_size in (11, 12):
        model = build(vocab_size=vocab_size)
        project = model.core.project
        monkeypatch.setattr(
            model.core,
            "project",
            lambda x, project=project, **options: (
                rows.append(tuple(x.shape[:-1])),
                project(x, **options),
            )[1],
        )
        model(draw(vocab_size, BATCH, TIME), QUERIES)
    # The encodings, then 11 + 1 rows for 12 tokens; one more id: token by token, and the query.
    assert rows == [(7,), (12,), (7,), (TIME * BATCH + 1,)]


def test_the_plain_path_has_its_own_weights():
    model = build()
    plain = PlainRNN(model)
    plain.embedding.weight.data.zero_()
    plain.core.weight_ih_l0.data.zero_()
    assert model.embedding.weight.any()
    assert model.core.weight_ih_l0.any()


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


def test_a_learned_code_adds_its_table_and_a_row_its_width():
    def count(encoding="sinusoidal", **options):
        sizes = {"embedding_size": 8, "hidden_size": 8}
        return PositionEncodedRNN(9, "gru", encoding, **sizes, **options).num_parameters

    assert count("learned", num_positions=20) - count() == 20 * 8
    assert [count(num_extra_rows=rows) - count() for rows in (0, 1, 2)] == [-8, 0, 8]


def test_initial_weights_are_distributed_as_described(generator):
    sizes = {"embedding_size": 512, "hidden_size": 64}
    model = PositionEncodedRNN(500, "gru", generator=generator, **sizes)
    assert abs(model.embedding.weight.std() - 1) < 0.01
    assert abs(model.embedding.weight.mean()) < 0.01
    for parameter in model.output_layer.parameters():
        assert 0.9 / 8 < parameter.abs().max() <= 1 / 8


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
    encoding = Sinusoidal(4)
    ours = LSTM(encoding.joined_size(6), HIDDEN, generator=generator, batch_first=batch_first)
    layer = nn.LSTM(encoding.joined_size(6), HIDDEN, batch_first=batch_first)
    layer.load_state_dict(ours.state_dict())
    vectors = torch.randn(BATCH, TIME, 6, generator=generator)
    state = tuple(torch.randn(1, BATCH, HIDDEN, generator=generator) for _ in range(2))
    whole = nn.LSTM(encoding.joined_size(6), HIDDEN, batch_first=True)
    whole.load_state_dict(ours.state_dict())
    expected, finals = whole(encoding.join(vectors), state)
    if not batched:
        vectors, expected = vectors[1], expected[1]
        state, finals = (tuple(part[:, 1] for part in parts) for parts in (state, finals))
    elif not batch_first:
        vectors, expected = vectors.transpose(0, 1), expected.transpose(0, 1)
    for wrapped in (ours, layer):
        wrapped = PositionEncoded(wrapped, encoding)
        outputs, final, position = wrapped(vectors, state, position_offset=0)
        torch.testing.assert_close((outputs, final), (expected, finals))
        assert position == TIME


def test_the_first_map_of_vectors_is_drawn_as_pytorch_draws():
    model, bound = build("vector", vocab_size=3), 3**-0.5
    assert 0 < model.embedding.weight.abs().max() <= bound
    assert 0 < model.embedding.bias.abs().max() <= bound


@pytest.mark.parametrize(
    ("encoding", "columns"), [("none", 16), ("sinusoidal", 32), ("repeated_embedding", 32)]
)
def test_parameters_for_vectors_are_two_linear_maps_and_a_core(encoding, columns):
    model = VectorRNN(8, "gru", encoding, embedding_size=16, hidden_size=10)
    core = 3 * 10 * (columns + 10 + 2)
    assert model.num_parameters == (8 * 16 + 16) + core + (10 * 8 + 8)
