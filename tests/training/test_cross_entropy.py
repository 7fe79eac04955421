"""Read-out and loss in chunks against PyTorch's, in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.nn import functional as F

from agreement import each_way, threads
from oracle import PlainRNN
from pernn import PositionEncodedRNN
from pernn.cross_entropy import CHUNK_SIZES, linear_cross_entropy
from pernn.errors import ConfigError
from pernn.kernels import product
from pernn.lab.cores import CORES
from pernn.lab.interfaces import UNSCORED, Batch
from pernn.lab.training.objective import DeviceBatch, batch_loss


def leaves(rows, width, vocab, seed, *, bias=True):
    generator = torch.Generator().manual_seed(seed)
    states, weight, shift = (
        (3 * torch.randn(*shape, generator=generator)).requires_grad_()
        for shape in ((rows, width), (vocab, width), (vocab,))
    )
    targets = torch.randint(vocab, (rows,), generator=generator)
    return states, weight, shift if bias else None, targets


@each_way
@example(rows=40, width=3, vocab=1_000, chunk=40_000, bias=True, seed=0)  # shared by threads
@given(
    rows=st.integers(1, 20),
    width=st.integers(1, 9),
    vocab=st.integers(1, 40),
    chunk=st.integers(1, 200),
    bias=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_loss_share_and_gradients_are_those_of_the_plain_way(
    way, rows, width, vocab, chunk, bias, seed
):
    parts = leaves(rows, width, vocab, seed, bias=bias)
    with way(), threads(2), pytest.MonkeyPatch.context() as patch:
        patch.setitem(CHUNK_SIZES, "cpu", chunk)
        loss, share = linear_cross_entropy(*parts)
        (2 * loss).backward()
    wide = [None if p is None else p.detach().double().requires_grad_() for p in parts[:3]]
    logits = F.linear(*wide)
    expected = F.cross_entropy(logits, parts[3])
    (2 * expected).backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
    assert not share.requires_grad
    best = logits.detach().topk(min(2, vocab), dim=1).values
    if vocab > 1 and (best[:, 0] - best[:, 1]).min() > 1e-4:
        right = (logits.argmax(1) == parts[3]).double().mean()
        assert share.item() == pytest.approx(right.item())
    for one, other in zip(parts, wide, strict=False):
        if one is not None:
            scale = other.grad.abs().max().clamp_min(1e-2)
            assert ((one.grad - other.grad).abs().max() / scale) < 1e-5


@each_way
def test_extreme_logits_and_no_rows_give_numbers(way):
    states = torch.tensor([[1e4, 0.0], [-1e4, 0.0]], requires_grad=True)
    weight = torch.eye(2, requires_grad=True)
    with way():
        loss, share = linear_cross_entropy(states, weight, None, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx(5e3)
    assert share.item() == 0.5
    assert states.grad.tolist() == [[0, 0], [-0.5, 0.5]]
    states, weight, bias, targets = leaves(0, 3, 6, 2)
    spoilt = torch.full_like(weight, torch.nan)
    del spoilt  # its memory is taken next
    with way():
        linear_cross_entropy(states, weight, bias, targets, torch.zeros(0))[0].backward()
    assert not weight.grad.any()
    assert not bias.grad.any()


@each_way
@pytest.mark.parametrize("lowest", [-math.inf, -1e30, torch.finfo().min])
def test_ids_may_be_masked(way, lowest):
    states, weight, bias, targets = leaves(6, 4, 40, 1)
    with torch.no_grad():
        bias[[3, 38]] = lowest
    targets = torch.arange(5, 11)
    with way():
        loss, _ = linear_cross_entropy(states, weight, bias, targets)
    loss.backward()
    expected = F.cross_entropy(F.linear(states, weight, bias), targets)
    torch.testing.assert_close(loss.double(), expected.double(), rtol=1e-5, atol=0)
    assert all(one.grad.isfinite().all() for one in (states, weight, bias))


@each_way
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_ids_of_every_type_are_read(way, dtype):
    states, weight, bias, targets = leaves(4, 3, 6, 2)
    for weights in (None, torch.full((4,), 0.25)):
        with way():
            expected = linear_cross_entropy(states, weight, bias, targets, weights)
            found = linear_cross_entropy(states, weight, bias, targets.to(dtype), weights)
        assert found == expected


@each_way
def test_second_derivatives_and_targets_out_of_range_are_refused(way):
    states, weight, bias, targets = leaves(4, 3, 6, 2)
    with way():
        loss, _ = linear_cross_entropy(states, weight, bias, targets)
        with pytest.raises(ConfigError, match=r"no second derivative .*use torch\.nn\.functional"):
            torch.autograd.grad(loss, weight, create_graph=True)
    states, weight, bias, targets = leaves(3, 2, 5, 1)
    targets[1] = 5
    with way(), pytest.raises((IndexError, RuntimeError)):
        linear_cross_entropy(states, weight, bias, targets)


def test_weights_that_are_frozen_get_no_gradient():
    states, weight, bias, targets = leaves(4, 3, 6, 2)
    linear_cross_entropy(states, weight.detach(), bias.detach(), targets)[0].backward()
    assert states.grad is not None
    assert weight.grad is None


def test_the_memory_of_logits_does_not_grow_with_their_number(monkeypatch):
    sizes = []

    def spy(left, right, out, **options):
        sizes.append(out.numel())
        return product(left, right, out, **options)

    monkeypatch.setattr("pernn.cross_entropy.product", spy)
    monkeypatch.setitem(CHUNK_SIZES, "cpu", 64)
    for rows in (10, 1000):
        linear_cross_entropy(*leaves(rows, 3, 16, 3))
        assert max(sizes) == 64


@pytest.mark.parametrize("core", CORES.names())
@pytest.mark.parametrize("told_by", [None, "rows", "weights"])
def test_a_batch_costs_what_the_plain_network_says(core, told_by, generator):
    model = PositionEncodedRNN(9, core, embedding_size=6, hidden_size=16, generator=generator)
    tokens = torch.randint(9, (5, 4), generator=generator)
    targets = torch.randint(9, (5, 4), generator=generator)
    mask = torch.rand(5, 4, generator=generator) < (0.6 if told_by else 2)
    plain = PlainRNN(model)
    logits = plain(tokens, 4, num_scored=4, scored=mask)
    expected = F.cross_entropy(logits, targets[mask])
    right = (logits.argmax(-1) == targets[mask]).double().mean()
    ids = np.where(mask.numpy(), targets.numpy(), UNSCORED)
    shown = DeviceBatch.of(Batch(tokens.numpy(), 4, ids), torch.device("cpu"))
    assert (shown.rows is None) == (told_by is None)
    if told_by == "weights":  # as on a device
        shown = DeviceBatch(tokens, targets, 4, 4, weights=mask / mask.sum())
    loss, share = batch_loss(model, shown)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert share.item() == pytest.approx(right.item())
    for one in (loss, expected):
        one.backward()
    torch.testing.assert_close(
        model.embedding.weight.grad, plain.embedding.weight.grad, rtol=1e-3, atol=1e-6
    )
    with pytest.raises(ConfigError, match="num_scored"):
        batch_loss(model, DeviceBatch(tokens, targets, 4, 9))
