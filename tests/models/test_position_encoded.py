"""The network of tokens and queries, and a layer with an encoding before it."""

import pytest
import torch
from torch import nn

from models.test_laws import BATCH, ENCODED, HIDDEN, QUERIES, TIME, WIDTH, build, draw, measured
from pairs import pairwise
from pernn import GRU, LSTM, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.encodings import Learned, NoEncoding
from pernn.errors import ConfigError
from pernn.kernels import describe_kernels, find_kernels
from pernn.models import PlainRNN


@pytest.mark.skipif(find_kernels() is None, reason=describe_kernels())
@pairwise(core=["elman", "gru", "lstm"], encoded=ENCODED, layers=[1, 2], vocab_size=[7, 50])
def test_the_compiled_path_equals_the_plain_one(core, encoded, layers, vocab_size):
    encoding, place = encoded
    model = build("queried", core, encoding, vocab_size, layers, hidden=16, **place)
    found = measured("queried", model, vocab_size)
    expected = measured("queried", PlainRNN(model).double(), vocab_size)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        error = (found[name] - value).abs().max() / value.abs().max().clamp_min(1e-6)
        assert error < 1e-5, name


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


def test_a_learned_code_adds_its_table():
    sizes = {"embedding_size": 8, "hidden_size": 8}
    learned = PositionEncodedRNN(9, "gru", "learned", num_positions=20, **sizes)
    sinusoidal = PositionEncodedRNN(9, "gru", "sinusoidal", **sizes)
    assert learned.num_parameters - sinusoidal.num_parameters == 20 * 8


def test_initial_weights_are_distributed_as_described(generator):
    sizes = {"embedding_size": 512, "hidden_size": 64}
    model = PositionEncodedRNN(500, "gru", generator=generator, **sizes)
    assert abs(model.embedding.weight.std() - 1) < 0.01
    assert abs(model.embedding.weight.mean()) < 0.01
    for parameter in model.output_layer.parameters():
        assert 0.9 / 8 < parameter.abs().max() <= 1 / 8


def test_the_query_row_is_trained_by_the_sum_over_steps():
    model = build(vocab_size=7).double()
    model(draw(7, BATCH, TIME), QUERIES).sum().backward()
    assert model.embedding.weight.grad[7].any()
    model.zero_grad()
    model(draw(7, BATCH, TIME)).sum().backward()
    assert not model.embedding.weight.grad[7].any()


def test_a_vanilla_network_has_no_clock_and_an_encoded_one_has():
    tokens = torch.full((1, 4), 3)
    for encoding, differs in (("none", False), ("repeated_embedding", False), ("sinusoidal", True)):
        gates = build(encoding=encoding).project(tokens, 2)
        assert torch.equal(gates[:, 0], gates[:, 3]) != differs
        assert torch.equal(gates[:, 4], gates[:, 5]) != differs


def test_too_few_ids_are_refused():
    with pytest.raises(ConfigError, match="vocab_size must be at least 2, got 1"):
        PositionEncodedRNN(1)


def test_a_core_of_another_width_is_refused():
    message = (
        r"the core takes vectors of 6, but embedding and encoding together have 10: "
        r"build it with input_size=10"
    )
    with pytest.raises(ConfigError, match=message):
        PositionEncodedRNN(9, GRU(6, 8), Sinusoidal(4), embedding_size=6)


def test_kinds_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match=r"no kind 'lstn', did you mean 'lstm'\?"):
        PositionEncodedRNN(9, "lstn")
    with pytest.raises(ConfigError, match=r"no kind 'sine'"):
        PositionEncodedRNN(9, "lstm", "sine")


def test_a_core_without_a_plain_twin_is_named():
    class Own(nn.Module):
        input_size, hidden_size = WIDTH, HIDDEN

        def project(self, inputs, *, offset=0, bias=True):
            return inputs

        def recur(self, gates, state=None):
            return gates, None

    model = PositionEncodedRNN(9, Own(), NoEncoding(), embedding_size=WIDTH)
    with pytest.raises(ConfigError, match="no plain twin is known of the core Own"):
        PlainRNN(model)


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


def test_a_wrapped_layer_trains_its_code():
    wrapped = PositionEncoded(GRU(10, HIDDEN, batch_first=True), Learned(4, TIME))
    wrapped(torch.zeros(BATCH, TIME, 6))[0].sum().backward()
    assert wrapped.encoding.weight.grad.any()
    assert set(dict(wrapped.named_children())) == {"layer", "encoding"}


@pytest.mark.parametrize("layer", [LSTM, nn.LSTM])
def test_a_wrapped_layer_of_another_width_is_refused(layer):
    wrapped = PositionEncoded(layer(9, HIDDEN), Sinusoidal(4))
    with pytest.raises(ConfigError, match=r"input_size is invalid: expected 10, the 6 .*, got 9"):
        wrapped(torch.zeros(1, 2, 6))


@pytest.mark.parametrize("size", ["hidden_size", "embedding_size"])
def test_a_width_of_nothing_is_named(size):
    with pytest.raises(ConfigError, match=f"{size} is invalid: expected at least 1, got 0"):
        PositionEncodedRNN(8, **{size: 0})
