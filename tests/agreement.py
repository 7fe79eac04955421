"""Agreement of two paths through one network: outputs, loss and gradients."""

from contextlib import contextmanager, nullcontext

import pytest
import torch

from pernn.kernels import without_kernels

NO_GRADIENTS = {"logits", "outputs", "loss"}
each_way = pytest.mark.parametrize("way", [nullcontext, without_kernels], ids=["compiled", "torch"])


@contextmanager
def threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def error_of(found, exact):
    """Return the largest error of any gradient, as a part of the largest gradient."""
    names = exact.keys() - NO_GRADIENTS
    largest = max(exact[name].abs().max() for name in names)
    return max((found[name] - exact[name]).abs().max() for name in names) / largest


def assert_agree(found, expected, tolerance, cancelling=1):
    """Compare value by value; `cancelling` loosens what adds terms of both signs in float32."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert value is not None, name
        error = (found[name] - value).abs().max() / value.abs().max().clamp_min(1e-6)
        # A channel's step width and decays gather terms of both signs from all modes: in float32
        # both paths are 2e-5 from the gradient in float64, and 2e-5 from each other.
        cancels = value.dtype == torch.float32 and name.endswith(("log_step", "log_decay"))
        assert error < (cancelling * tolerance if cancels else tolerance), name


def assert_as_exact(found, others, exact, tolerance):
    """Compare values, and gradients by their errors against a float64 pass.

    For a core whose gradients have few digits in float32 by any path: norms take out of them what
    is along their vectors, and of one decay, one number, 1e-6 of the largest may be left.

    Args:
        found: What is tested.
        others: The plain path's first, then others that are as exact as float32 can be.
        exact: The float64 pass.
        tolerance: Of values; of gradients, where those of the others are within it.
    """
    expected = others[0]
    assert found.keys() == expected.keys() == exact.keys()
    values = NO_GRADIENTS & exact.keys()
    assert_agree(*({name: one[name] for name in values} for one in (found, expected)), tolerance)
    errors = [error_of(one, exact) for one in others]
    assert error_of(found, exact) < 2 * max(tolerance, *errors)
