"""The scenarios of damage in small; at full length they are run by `benchmarks/scenarios`."""

from pathlib import Path

import pytest
from scenarios import SCENARIOS

SMALL = {
    "damaged_files": {"num_flips": 20, "most": 15},
    "full_disk": {"num_sizes": 1},
    "fuzz": {"num_inputs": 3_000, "seconds": 60.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_scenario(tmp_path: Path, name: str) -> None:
    counts = SCENARIOS[name](tmp_path, **SMALL[name])
    print(name, counts)
    assert all(value != 0 for value in counts.values())
