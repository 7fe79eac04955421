"""Settings of all tests: one thread, and the same examples every time."""

from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="session", autouse=True)
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of prepared corpora for all tests, so that each is prepared once."""
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERNN_DATA", str(root))
        yield root


@pytest.fixture
def generator() -> torch.Generator:
    """A generator of known seed, so that no test depends on another."""
    return torch.Generator().manual_seed(20240201)
