"""Calls as users of PyTorch make them: chunks with a carried state, one sequence, odd options."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from drawn import draw
from pernn import GRU, LSTM, S4D, PositionEncoded, PositionEncodedRNN, Sinusoidal
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.models import AutoregressiveRNN, VectorRNN

CORE_KINDS, ENCODING_KINDS = CORES.names(), ENCODINGS.names()
WIDTH, BATCH, TIME, CUT = 4, 2, 7, 3


def network(core, encoding="sinusoidal", cls=PositionEncodedRNN, **options):
    generator = torch.Generator().manual_seed(1)
    sizes = {"embedding_size": WIDTH, "hidden_size": 6, **options}
    return cls(9, core, encoding, generator=generator, **sizes).double()


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("core", CORE_KINDS)
@pytest.mark.parametrize("encoding", ENCODING_KINDS)
@pytest.mark.parametrize("batch_first", [True, False])
def test_two_chunks_of_a_layer_are_the_whole(core, encoding, batch_first):
    code = network("gru", encoding).encoding
    layer = CORES.validate({"kind": core, "hidden_size": 6}).build(code.joined_size(WIDTH)).double()
    layer.batch_first = batch_first
    wrapped, vectors = PositionEncoded(layer, code), draw(BATCH, TIME, WIDTH)
    time = 1 if batch_first else 0
    vectors = vectors if batch_first else vectors.transpose(0, 1)
    whole, final = wrapped(vectors)
    first, second = vectors.split([CUT, TIME - CUT], dim=time)
    before, state, position = wrapped(first, position_offset=0)
    after, end, position = wrapped(second, state, position_offset=position)
    close(torch.cat([before, after], dim=time), whole)
    close(end, final)
    assert position == TIME


@pytest.mark.parametrize("core", CORE_KINDS)
@pytest.mark.parametrize("encoding", ENCODING_KINDS)
def test_two_chunks_of_a_network_are_the_whole(core, encoding):
    model = network(core, encoding)
    tokens = torch.randint(9, (BATCH, TIME), generator=torch.Generator().manual_seed(2))
    whole = model(tokens, num_queries=4, num_scored=TIME + 4)
    before, state, position = model(tokens[:, :CUT], return_state=True)
    carried = {"hx": state, "position_offset": position, "return_state": True}
    after, state, position = model(tokens[:, CUT:], num_queries=4, num_scored=TIME + 1, **carried)
    assert position == TIME + 4
    close(torch.cat([before, after[:, : TIME - CUT + 4]], dim=1), whole)


def test_a_state_without_its_position_is_refused():
    model, wrapped = network("gru"), PositionEncoded(GRU(10, 8, batch_first=True), Sinusoidal(6))
    _, state, _ = model(torch.zeros(1, 2, dtype=torch.long), return_state=True)
    for call in (
        lambda: model(torch.zeros(1, 2, dtype=torch.long), hx=state),
        lambda: wrapped(torch.zeros(2, 5, 4), torch.zeros(1, 2, 8)),
    ):
        with pytest.raises(ConfigError, match=r"position_offset is missing: .*position_offset=0"):
            call()
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        wrapped(torch.zeros(2, 5, 4), position_offset=-1)
    # Without an encoding there is no position to lose.
    vanilla = network("gru", "none")
    vanilla(torch.zeros(1, 2, dtype=torch.long), hx=state)


@pytest.mark.parametrize("cls", [PositionEncodedRNN, VectorRNN])
@pytest.mark.parametrize("core", CORE_KINDS)
def test_a_single_sequence_is_a_batch_of_one(cls, core):
    model = network(core, cls=cls)
    one = torch.arange(5) if cls is PositionEncodedRNN else draw(5, 9)
    logits, state, position = model(one, num_queries=3, return_state=True)
    expected, finals, _ = model(one.unsqueeze(0), num_queries=3, return_state=True)
    close(logits, expected.squeeze(0))
    parts, wholes = (s if isinstance(s, tuple) else (s,) for s in (state, finals))
    close(parts, tuple(part.squeeze(1) for part in wholes))
    more = model(one, hx=state, position_offset=position)
    close(more, model(one.unsqueeze(0), hx=finals, position_offset=position).squeeze(0))


@pytest.mark.parametrize("core", [GRU(3, 4), S4D(3, 4)])
def test_what_a_core_lacks_is_refused_in_a_line(core):
    name, cls = type(core).__name__, type(core)
    for option in ({"bidirectional": True}, {"dropout": 0.5}, {"proj_size": 2}):
        with pytest.raises(ConfigError, match=rf"{name}: {next(iter(option))}=.* not supported"):
            cls(3, 4, **option)
    cls(3, 4, bidirectional=False, dropout=0.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bidirektional'"):
        cls(3, 4, bidirektional=True)
    packed = pack_sequence([torch.zeros(2, 4)])
    with pytest.raises(ConfigError, match="takes vectors of 3, got 4"):
        core(packed)
    with pytest.raises(ConfigError, match="num_outputs is invalid beside a PackedSequence"):
        core(packed, num_outputs=1)
    with pytest.raises(ConfigError, match=r"shape is invalid: .*got \(1, 2, 3, 3\)"):
        core(torch.zeros(1, 2, 3, 3))


@pytest.mark.parametrize("cls", [LSTM, S4D])
def test_device_and_dtype_do_not_change_the_draws(cls):
    plain, other = (
        cls(3, 4, generator=torch.Generator().manual_seed(1), **kwargs)
        for kwargs in ({}, {"dtype": torch.float64})
    )
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        assert two.dtype == torch.float64
        assert torch.equal(one.double(), two)
    assert {p.device.type for p in cls(3, 4, device="meta").parameters()} == {"meta"}


def test_a_bidirectional_layer_with_dropout_can_be_wrapped():
    layer = nn.LSTM(4 + 6, 5, 2, bidirectional=True, dropout=0.1)
    outputs, _ = PositionEncoded(layer, Sinusoidal(6))(torch.zeros(7, 2, 4))
    assert outputs.shape == (7, 2, 10)


class Anonymous(nn.Module):
    """A layer that does not say which axis is time."""

    def forward(self, vectors, hx):
        return vectors, hx


def test_which_axis_is_time_is_read_or_said():
    with pytest.raises(ConfigError, match="pass batch_first as the layer has it"):
        PositionEncoded(Anonymous(), Sinusoidal(6))
    with pytest.raises(ConfigError, match="got True, and GRU has False"):
        PositionEncoded(nn.GRU(10, 8), Sinusoidal(6), batch_first=True)
    outputs, _ = PositionEncoded(Anonymous(), Sinusoidal(6), batch_first=False)(
        torch.zeros(3, 2, 4)
    )
    assert torch.equal(outputs[:, 0, 4:], Sinusoidal(6)(3))
    assert torch.equal(outputs[:, 0], outputs[:, 1])


def test_an_encoding_by_name_cannot_be_sized_by_a_layer():
    with pytest.raises(ConfigError, match=r"expected a module such as Sinusoidal\(6\), got 'sinu"):
        PositionEncoded(nn.GRU(10, 8), "sinusoidal")


def test_an_encoding_joins_vectors_when_called():
    vectors = draw(2, 5, 4)
    code = Sinusoidal(6).double()
    assert torch.equal(code(vectors), code.join(vectors))
    assert torch.equal(code(vectors[0], position_offset=2)[:, 4:], code(7)[2:])
    with pytest.raises(ConfigError, match="vectors' shape is invalid"):
        code(vectors[0, 0])


def test_representations_say_what_matters():
    code = ENCODINGS.validate({"kind": "learned", "size": 6, "combine": "add"}).build(9, "halves")
    assert repr(code) == "Learned(6, combine='add')"
    assert repr(PositionEncoded(GRU(10, 8, batch_first=True), Sinusoidal(6))).split("\n") == [
        "PositionEncoded(",
        "  (layer): GRU(10, 8, num_layers=1, batch_first=True)",
        "  (encoding): Sinusoidal(6, layout='halves')",
        ")",
    ]


def test_a_network_of_two_layers_by_name_or_class():
    tokens = torch.arange(9).unsqueeze(0)
    outputs = [network(core, num_layers=2)(tokens, num_queries=2) for core in ("gru", GRU, nn.GRU)]
    assert network(nn.GRU, num_layers=2).core.num_layers == 2
    assert type(network(nn.RNN).core).__name__ == "Elman"
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("cls", [PositionEncodedRNN, VectorRNN, AutoregressiveRNN])
def test_the_embedding_is_as_wide_as_the_state_unless_it_is_said(cls):
    expected = 8 if cls is AutoregressiveRNN else 16  # whose encoding is none
    assert cls(9, "gru", hidden_size=8).joined_size == expected
    assert cls(9, GRU(8, 8), "none", **({"phase_size": 0} if cls is AutoregressiveRNN else {}))
    model = cls(9, "gru", hidden_size=8, device="cpu", dtype=torch.float64)
    assert {p.dtype for p in model.parameters()} == {torch.float64}


@pytest.mark.parametrize(
    ("core", "options", "said"),
    [
        (GRU(10, 8), {"hidden_size": 999}, "hidden_size=999 is invalid beside a core that is a"),
        (GRU(10, 8), {"num_layers": 2}, "num_layers=2 is invalid beside"),
        (nn.Linear, {}, "core is invalid: expected a kind, a core .* got Linear"),
        (
            "gru",
            {"num_positions": 9},
            "num_positions is invalid: expected with an encoding given by",
        ),
    ],
)
def test_sizes_that_would_be_ignored_are_refused(core, options, said):
    with pytest.raises(ConfigError, match=said):
        PositionEncodedRNN(9, core, Sinusoidal(6), embedding_size=4, **options)
