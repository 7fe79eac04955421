"""The scenarios of damage in small; at full length they are run by `benchmarks/scenarios`."""

from pathlib import Path

import pytest
from scenarios import SCENARIOS

SMALL = {
    "damaged_files": {"num_flips": 20, "most": 15},
    "full_disk": {"num_sizes": 1},
    "confounded": {},
    "foreign_parts": {},
    "hub_folders": {},
    "fuzz": {"num_inputs": 3_000, "seconds": 180.0},
}
LEAST = {
    "damaged_files": 15,
    "full_disk": 1,
    "confounded": 3,
    "foreign_parts": 40,
    "hub_folders": 30,
    "fuzz": 3_000,
}
"""Cases that each must have had; a broken promise raises."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the undisturbed sweep is made once."""
    return tmp_path_factory.mktemp("scenarios")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_scenario(directory: Path, name: str) -> None:
    counts = SCENARIOS[name](directory, **SMALL[name])
    print(name, counts)
    assert counts.get("num_cases", counts.get("num_inputs")) >= LEAST[name]
