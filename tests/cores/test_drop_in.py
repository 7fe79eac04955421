"""A layer of ours in the place of PyTorch's: arguments, axes, attributes, packed sequences."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

import drawn
from drawn import parts_of
from pairs import pairwise
from pernn.cores import GRU, LRU, LSTM, S4D, Elman, GatedDelta, MinGRU, MinLSTM
from pernn.cores.scanning import is_faster
from pernn.kernels import describe_kernels, find_kernels, rounding_products, without_kernels

PAIRS = {"elman": (Elman, nn.RNN), "gru": (GRU, nn.GRU), "lstm": (LSTM, nn.LSTM)}
each_pair = pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS)


draw = partial(drawn.draw, seed=1, dtype=torch.float32)


def twins(ours, theirs, *args, **options):
    one, other = ours(*args, **options), theirs(*args, **options)
    other.load_state_dict(one.state_dict())
    return one, other


@each_pair
def test_arguments_stand_where_pytorch_has_them(ours, theirs):
    args = [8, 16, 2, *(["tanh"] if ours is Elman else []), False, True, 0.0, False]
    one, other = twins(ours, theirs, *args)
    # Square in batch and time: a swap would show in no shape.
    inputs = draw(6, 6, 8)
    torch.testing.assert_close(one(inputs), other(inputs))
    one, other = twins(ours, theirs, 8, 16)  # by default, too
    torch.testing.assert_close(one(inputs), other(inputs))
    one, other = twins(ours, theirs, *args)
    names = ["num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size", "mode"]
    for name in ["input_size", "hidden_size", *names]:
        assert getattr(one, name) == getattr(other, name), name
    torch.testing.assert_close(one.all_weights, other.all_weights, rtol=0, atol=0)
    assert one.flatten_parameters() is None
    made = ours(*args, 0, "cpu", torch.float64)
    assert {p.dtype for p in made.parameters()} == {torch.float64}


@each_pair
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_state", [False, True])
def test_a_trace_serves_any_length_and_trains(ours, theirs, batch_first, with_state):
    one, other = twins(ours, theirs, 8, 16, 2, batch_first=batch_first)
    shape = (lambda steps: (3, steps, 8)) if batch_first else (lambda steps: (steps, 3, 8))
    with torch.no_grad():
        state = (other(draw(*shape(2)))[1],) if with_state else ()
    traced = torch.jit.trace(one, (draw(*shape(12)), *state))
    for steps in (5, 20):
        torch.testing.assert_close(
            traced(draw(*shape(steps)), *state), other(draw(*shape(steps)), *state)
        )
    for way in (traced, other):
        way(draw(*shape(5)), *state)[0].square().sum().backward()
    torch.testing.assert_close(*([p.grad for p in way.parameters()] for way in (one, other)))


@pairwise(
    kind=[Elman, GRU, LSTM, S4D, MinGRU, MinLSTM, LRU, GatedDelta],
    sorted_by=["caller", "pytorch"],
    rounds=[False, True],
    with_state=[False, True],
)
def test_a_packed_sequence_is_each_sequence_alone(kind, sorted_by, rounds, with_state):
    core = kind(3, 16, 2)
    lengths = [7, 4, 4, 1] if sorted_by == "caller" else [4, 1, 7, 4]
    inputs = [draw(length, 3, seed=length + i) for i, length in enumerate(lengths)]
    _, state = core(draw(4, 4, 3)) if with_state else (None, None)
    with rounding_products(rounds=rounds):
        packed, final = core(pack_sequence(inputs, enforce_sorted=sorted_by == "caller"), state)
        assert isinstance(packed, PackedSequence)
        for index, found in enumerate(unpack_sequence(packed)):
            part = None if state is None else [one[:, index] for one in parts_of(state)]
            outputs, end = core(inputs[index], part if part is None or len(part) > 1 else part[0])
            parts = found, *(one[:, index] for one in parts_of(final))
            expected = outputs, *parts_of(end)
            torch.testing.assert_close(parts, expected, rtol=1e-4, atol=1e-5)


def spy(monkeypatch, kind):
    """Return a list that fills with what ran: PyTorch's operator, or ours."""
    ran = []

    def record(place, name, said):
        run = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *args: (ran.append(said), run(*args))[1])

    record(torch._VF, PAIRS[kind][0].mode.lower(), "operator")
    record(torch.ops.pernn, "scan_forward", "kernels")
    return ran


@pytest.mark.skipif(find_kernels() is None, reason=describe_kernels())
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(
    ("steps", "batch", "trains", "expected"),
    [
        (16, 8, True, "kernels"),
        (16, 8, False, "operator"),  # packing the weights would not pay
        (64, 1, False, "kernels"),
        (64, 64, False, "operator"),  # so many sequences keep it busy
        (32, 512, True, "operator"),
        (1, 8, True, "operator"),
        (2048, 128, True, "operator"),  # more than the cache holds
    ],
)
def test_the_faster_operator_runs(kind, steps, batch, trains, expected, monkeypatch):
    core = PAIRS[kind][0](8, 32)
    expected = "operator" if kind == "lstm" else expected
    ran = spy(monkeypatch, kind)
    with torch.set_grad_enabled(trains):
        core(torch.zeros(steps, batch, 8))
    assert ran == [expected]
    assert is_faster(kind, 32, steps, batch, trains=trains) == (expected == "kernels")
    ran.clear()
    with without_kernels(), torch.set_grad_enabled(trains):
        core(torch.zeros(steps, batch, 8))
    assert ran == ["operator"]
    ran.clear()
    with torch.set_grad_enabled(trains), rounding_products(rounds=True):
        core(torch.zeros(16, 8, 8))
    assert "operator" not in ran


@each_pair
def test_a_subclass_computes_what_it_says(ours, theirs):
    class Still(ours):
        def scan(self, layer, gates, state):
            return torch.zeros(*gates.shape[:2], self.hidden_size), state

    assert not Still(8, 32)(draw(9, 2, 8))[0].any()


def test_a_state_may_be_a_list_and_weights_may_be_nowhere():
    one, other = twins(LSTM, nn.LSTM, 3, 4)
    state = [draw(1, 2, 4), draw(1, 2, 4, seed=2)]
    torch.testing.assert_close(one(draw(5, 2, 3), state), other(draw(5, 2, 3), state))
    outputs, _ = LSTM(3, 4, device="meta")(torch.zeros(5, 2, 3, device="meta"))
    assert outputs.shape == (5, 2, 4)
