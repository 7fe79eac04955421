"""Settings of all tests: one thread, and the same examples every time."""

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

settings.register_profile(
    "pernn",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pernn")


@pytest.fixture
def generator() -> torch.Generator:
    """A generator of known seed, so that no test depends on another."""
    return torch.Generator().manual_seed(20240201)
