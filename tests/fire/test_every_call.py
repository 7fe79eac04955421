"""The fire scenario of harm at every call, in small."""

import os
from pathlib import Path

from scenarios.every_call import every_call, stopped_at_every_call


def test_harm_at_a_sample_of_all_calls_costs_nothing(tmp_path: Path) -> None:
    counts = every_call(tmp_path, most=6)
    print(counts)
    assert counts["num_cases"] == 6
    assert counts["num_calls"] >= 100


def test_a_holder_stopped_at_a_sample_of_all_calls_costs_nothing(tmp_path: Path) -> None:
    before = dict(os.environ)
    counts = stopped_at_every_call(tmp_path, most=3)
    # Later workers of this process would be taken for dead.
    assert os.environ == before
    print(counts)
    assert counts["num_cases"] == 3
    assert counts["num_calls"] >= 100
