"""Calls as users of PyTorch make them: chunks with a carried state, one sequence, odd options."""

import pytest
import torch
from torch import nn

from drawn import draw
from pernn import GRU, LSTM, S4D, Learned, PositionEncoded, PositionEncodedRNN, Sinusoidal
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
def test_two_chunks_of_a_network_are_the_whole(core, encoding):
    model = network(core, encoding)
    tokens = torch.randint(9, (BATCH, TIME), generator=torch.Generator().manual_seed(2))
    whole = model(tokens, num_queries=4, num_scored=TIME + 4)
    before, state, position = model(tokens[:, :CUT], return_state=True)
    carried = {"hx": state, "position_offset": position, "return_state": True}
    after, state, position = model(tokens[:, CUT:], num_queries=4, num_scored=TIME + 1, **carried)
    assert position == TIME + 4
    close(torch.cat([before, after[:, : TIME - CUT + 4]], dim=1), whole)


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


class Sums(torch.nn.Module):
    """A recurrence whose state is no tensor."""

    input_size, hidden_size = 8, 4

    def project(self, inputs, *, offset=0, bias=True):
        return inputs @ torch.eye(8, dtype=inputs.dtype)[offset : offset + inputs.shape[-1]]

    def recur(self, gates, state=None):
        start = gates[:, :1, :4] * 0 if state is None else state["sum"].unsqueeze(1)
        sums = start + gates[..., :4].cumsum(1)
        return sums, {"sum": sums[:, -1]}


def test_a_single_sequence_keeps_the_state_of_a_recurrence_of_ones_own():
    model = PositionEncodedRNN(9, Sums(), Sinusoidal(4), embedding_size=4).double()
    tokens = torch.arange(5)
    whole = model(tokens, num_scored=5)
    before, state, position = model(tokens[:3], num_scored=3, return_state=True)
    assert state["sum"].shape == (1, 4)
    after = model(tokens[3:], num_scored=2, hx=state, position_offset=position)
    close(torch.cat([before, after]), whole)


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


class Anonymous(nn.Module):
    def forward(self, vectors, hx):
        return vectors, hx


def test_an_encoding_joins_vectors_along_the_axis_that_is_time():
    vectors = draw(2, 5, 4)
    code = Sinusoidal(6).double()
    assert torch.equal(code(vectors), code.join(vectors))
    assert torch.equal(code(vectors[0], position_offset=2)[:, 4:], code(7)[2:])
    outputs, _ = PositionEncoded(Anonymous(), Sinusoidal(6), batch_first=False)(
        torch.zeros(3, 2, 4)
    )
    assert torch.equal(outputs[:, 0, 4:], Sinusoidal(6)(3))
    assert torch.equal(outputs[:, 0], outputs[:, 1])
    assert repr(Learned(6, 9, combine="add")) == "Learned(6, combine='add')"
    assert repr(Sinusoidal(6, masked="input")) == "Sinusoidal(6, layout='halves', masked='input')"
    assert repr(GRU(10, 8)) == "GRU(10, 8, num_layers=1)"


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
