"""Sequences of several lengths through a position-encoded layer: as if each ran alone."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, unpack_sequence

from drawn import draw, parts_of
from pernn import (
    GRU,
    LRU,
    LSTM,
    S4D,
    Elman,
    GatedDelta,
    Learned,
    MinGRU,
    MinLSTM,
    PositionEncoded,
    Sinusoidal,
)
from pernn.encodings.encoding import check_offset
from pernn.errors import ConfigError
from pernn.models.layer import to_integers

WIDTH, LENGTHS, STEPS = 4, [3, 7, 1, 5], 7
LAYERS = {
    "elman": lambda size, **options: Elman(size, 16, **options),
    "gru": lambda size, **options: GRU(size, 16, 2, **options),
    "lstm": lambda size, **options: LSTM(size, 5, **options),
    "s4d": lambda size, **options: S4D(size, 5, **options),
    "min_gru": lambda size, **options: MinGRU(size, 5, 2, **options),
    "min_lstm": lambda size, **options: MinLSTM(size, 5, **options),
    "lru": lambda size, **options: LRU(size, 5, 2, **options),
    "gated_delta": lambda size, **options: GatedDelta(size, 6, num_heads=2, **options),
    "torch": lambda size, **options: nn.LSTM(size, 5, 2, **options),
    "bidirectional": lambda size, **options: nn.GRU(size, 5, bidirectional=True, **options),
}
ENCODINGS = {"sinusoidal": lambda: Sinusoidal(6), "learned": lambda: Learned(6, 12)}
each_layer = pytest.mark.parametrize("kind", LAYERS)
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS)
each_axis = pytest.mark.parametrize("batch_first", [True, False])


def make(kind, encoding="sinusoidal", *, batch_first=True):
    layer = LAYERS[kind](WIDTH + 6, batch_first=batch_first)
    return PositionEncoded(layer, ENCODINGS[encoding]()).double()


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def check(wrapped, vectors, places, outputs, final, hx=None, offsets=None):
    """Compare with each sequence alone; `places` are its steps in the batch, batch first."""
    for index, place in enumerate(places):
        part = None if hx is None else tuple(one[:, index] for one in parts_of(hx))
        given = part if part is None or len(part) > 1 else part[0]
        offset = 0 if offsets is None else int(offsets[index])
        alone, end, _ = wrapped(vectors[index, place], given, position_offset=offset)
        close(outputs[index, place], alone)
        rest = torch.ones(vectors.shape[1], dtype=torch.bool)
        rest[place] = False
        assert not outputs[index, rest].any()
        close(tuple(one[:, index] for one in parts_of(final)), parts_of(end))


@each_layer
@each_encoding
@each_axis
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_is_skipped(kind, encoding, batch_first, side):
    wrapped, vectors = make(kind, encoding, batch_first=batch_first), draw(4, STEPS, WIDTH)
    given = vectors if batch_first else vectors.transpose(0, 1)
    if side == "right":
        outputs, final = wrapped(given, lengths=LENGTHS)
        _, _, ends = wrapped(given, lengths=torch.tensor(LENGTHS), position_offset=2)
        ends, places = ends - 2, [slice(0, n) for n in LENGTHS]
    else:
        offsets, places = torch.tensor(LENGTHS) - STEPS, [slice(STEPS - n, STEPS) for n in LENGTHS]
        outputs, final, ends = wrapped(given, position_offset=offsets)
    outputs = outputs if batch_first else outputs.transpose(0, 1)
    check(wrapped, vectors, places, outputs, final)
    assert ends.tolist() == LENGTHS


@pytest.mark.parametrize("kind", ["gru", "lstm", "s4d", "min_gru", "lru", "gated_delta", "torch"])
@each_axis
def test_each_sequence_goes_on_at_its_own_position(kind, batch_first):
    wrapped, vectors = make(kind, batch_first=batch_first), draw(4, STEPS, WIDTH)
    turn = (lambda part: part) if batch_first else (lambda part: part.transpose(0, 1))
    _, state, ends = wrapped(turn(vectors), position_offset=torch.tensor(LENGTHS) - STEPS)
    more = draw(4, 3, WIDTH)
    outputs, final, after = wrapped(turn(more), state, position_offset=ends)
    check(wrapped, more, [slice(0, 3)] * 4, turn(outputs), final, state, ends)
    assert after.tolist() == [n + 3 for n in LENGTHS]


@each_layer
@pytest.mark.parametrize("offset", [None, 2, torch.tensor([4, 0, 1, 2])])
def test_a_packed_sequence_is_each_sequence_alone(kind, offset):
    wrapped = make(kind)
    sequences = [draw(9, WIDTH)[:n] + i for i, n in enumerate(LENGTHS)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    outputs, final, *ends = wrapped(packed, position_offset=offset)
    assert isinstance(outputs, PackedSequence)
    offsets = torch.as_tensor(0 if offset is None else offset).expand(4).tolist()
    for index, found in enumerate(unpack_sequence(outputs)):
        alone, end, position = wrapped(sequences[index], position_offset=offsets[index])
        close(found, alone)
        assert not ends or int(ends[0][index]) == position
        close(tuple(one[:, index] for one in parts_of(final)), parts_of(end))


@pytest.mark.parametrize("given", ["padded", "packed"])
def test_padding_needs_no_row_of_a_table(given):
    wrapped = PositionEncoded(GRU(WIDTH + 6, 16, batch_first=True), Learned(6, STEPS)).double()
    offsets, vectors = [STEPS - n for n in LENGTHS], draw(4, STEPS + 5, WIDTH)
    if given == "padded":
        outputs, final, ends = wrapped(vectors, lengths=LENGTHS, position_offset=offsets)
        assert not wrapped(vectors, lengths=LENGTHS)[0][:, STEPS:].any()
    else:
        sequences = [one[:n] for one, n in zip(vectors, LENGTHS, strict=True)]
        packed = pack_sequence(sequences, enforce_sorted=False)
        packed, final, ends = wrapped(packed, position_offset=offsets)
        outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=STEPS + 5)
    places = [slice(0, n) for n in LENGTHS]
    check(wrapped, vectors, places, outputs, final, offsets=offsets)
    assert ends.tolist() == [STEPS] * 4


def test_gradients_stop_at_padding_which_no_packed_sequence_has_on_the_left():
    wrapped, vectors = make("gru", "learned"), draw(4, STEPS, WIDTH).requires_grad_()
    outputs, final = wrapped(vectors, lengths=LENGTHS)
    (outputs.sum() + final.sum()).backward()
    for index, length in enumerate(LENGTHS):
        assert vectors.grad[index, :length].any(dim=1).all()
        assert not vectors.grad[index, length:].any()
    assert wrapped.encoding.weight.grad[:STEPS].any(dim=1).all()
    packed = pack_sequence([draw(9, WIDTH)[:n] for n in LENGTHS], enforce_sorted=False)
    with pytest.raises(ConfigError, match="position_offset below 0"):
        make("gru")(packed, position_offset=torch.tensor([0, -2, 0, 0]))
    outputs, _ = make("gru")(draw(0, STEPS, WIDTH), lengths=[])
    assert outputs.shape == (0, STEPS, 16)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lengths": [1, 2]}, r"an integer for each of 4 sequences .*got shape"),
        ({"lengths": [0, 1, 2, 3]}, r"each sequence must have 1 … 7 steps, got 0 … 3"),
        ({"lengths": [1, 1, 2, 8]}, r"each sequence must have 1 … 7 steps, got 1 … 8"),
        (
            {"lengths": [1, 1, 1, 1], "position_offset": torch.tensor([0, -1, 0, 0])},
            "pad on one side only",
        ),
        ({"position_offset": torch.tensor([0, 1])}, r"integers of shape \(4,\) .*of shape \(2,\)"),
        ({"position_offset": torch.tensor([0, -7, 0, 0])}, "must have 1 … 7 steps, got 0 … 7"),
    ],
)
def test_what_does_not_fit_the_vectors_is_named(options, said):
    with pytest.raises(ConfigError, match=said):
        make("gru")(draw(4, STEPS, WIDTH), **options)


@pytest.mark.parametrize("given", [[0.5], np.array([1.5]), torch.tensor([True])])
def test_numbers_that_are_no_integers_are_refused(given):
    """Types are checked in tests before a layer sees them."""
    with pytest.raises(ConfigError, match="lengths is invalid: expected integers, got torch"):
        to_integers("lengths", given, torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"expected an integer of at least 0, got 1\.5"):
        check_offset(1.5)
    assert check_offset(np.uint8(254)) + 3 == 257  # NumPy's would wrap


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_positions_do_not_wrap_in_small_integers(dtype):
    most = min(torch.iinfo(dtype).max, 2**31 - 3)
    layer, vectors = make("gru"), draw(2, STEPS, WIDTH)
    offset = torch.tensor([most, most - 1])
    expected = layer(vectors, lengths=[7, 3], position_offset=offset)
    lengths = torch.tensor([7, 3], dtype=dtype)
    found = layer(vectors, lengths=lengths, position_offset=offset.to(dtype))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert found[2].tolist() == [most + 7, most + 2]
