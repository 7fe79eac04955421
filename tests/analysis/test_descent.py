"""Noise of gradients against its definition, and what precedes a fall of the loss."""

import numpy as np
import pytest
import torch

from pernn.analysis import gradient_noise, lead


def test_noise_is_that_of_mccandlish_with_one_batch_and_with_all():
    gradients = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    small, big = 16, 7 * 16
    by_one = gradients.double().square().sum(dim=1).mean()
    by_all = gradients.double().mean(dim=0).square().sum()
    signal, noise = gradient_noise(gradients, small)
    assert signal == pytest.approx((big * by_all - small * by_one) / (big - small))
    assert noise == pytest.approx((by_one - by_all) / (1 / small - 1 / big))


def test_noise_is_without_bias():
    torch.manual_seed(2)
    mean, spread, batch = torch.tensor([0.3, -0.4]), torch.tensor([1.0, 2.0]), 8
    gradients = mean + spread / batch**0.5 * torch.randn(2_000, 3, 2)
    found = torch.tensor([gradient_noise(one, batch) for one in gradients])
    error = found.std(dim=0) / len(found) ** 0.5
    assert ((found.mean(dim=0) - torch.tensor([0.25, 5.0])).abs() < 4 * error).all()
    assert (found[:, 0] < 0).any()  # as nothing is cut off


def falling(falls, start=2.0):
    return np.exp(start - np.cumsum([0, *falls]))


def test_what_is_the_next_fall_leads_and_its_opposite_leads_the_other_way():
    falls = np.array([0.5, 0.1, 0.3, 0.05, 0.2, 0.4])
    values = np.append(falls, 9.0)  # after the last time nothing falls any more
    assert lead(values, falling(falls)) == pytest.approx(1)
    assert lead(3 - 2 * values, falling(falls)) == pytest.approx(-1)


def test_what_the_loss_says_already_does_not_count():
    rng = np.random.default_rng(3)
    falls = rng.uniform(0, 0.5, 8)
    losses, values = falling(falls), rng.normal(size=9)
    before, fall = np.log(losses[:-1]), falls

    def partial(one, other, given):
        r = np.corrcoef([one, other, given])
        return (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))

    found = lead(values, losses)
    assert found == pytest.approx(partial(values[:-1], fall, before))
    assert lead(values + 5 * np.log(losses), losses) == pytest.approx(found)
    assert np.isnan(lead(2 + 0.1 * np.log(losses), losses))
    assert np.isnan(lead(np.full(9, 0.7), losses))
    assert np.isnan(lead(np.arange(4.0), np.array([3.0, 2.0, 1.0, 0.0])))
