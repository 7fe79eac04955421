"""The fire in small: what `benchmarks/fire.py` does with large counts. A broken promise raises."""

import os

import pytest
from scenarios import SCENARIOS
from scenarios.every_call import every_call, stopped_at_every_call

DAMAGE = {
    "damaged_files": ({"num_flips": 20, "most": 15}, 15),
    "full_disk": ({"num_sizes": 1}, 1),
    "confounded": ({}, 3),
    "fuzz": ({"num_inputs": 3_000, "seconds": 180.0}, 3_000),
}
"""Scenario → its counts, and how many cases it must have had."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("scenarios")


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGE)
def test_damage(directory, name):
    options, least = DAMAGE[name]
    counts = SCENARIOS[name](directory, **options)
    print(name, counts)
    assert counts.get("num_cases", counts.get("num_inputs")) >= least


def test_harm_at_a_sample_of_all_calls_costs_nothing(tmp_path):
    counts = every_call(tmp_path, most=6)
    print(counts)
    assert counts["num_cases"] == 6
    assert counts["num_calls"] >= 100


def test_a_holder_stopped_at_a_sample_of_all_calls_costs_nothing(tmp_path):
    before = dict(os.environ)
    counts = stopped_at_every_call(tmp_path, most=3)
    # Later workers of this process would be taken for dead.
    assert os.environ == before
    print(counts)
    assert counts["num_cases"] == 3
    assert counts["num_calls"] >= 100


KILLS = {
    "random_kills": ({"num_trials": 4, "num_kills": 4, "num_updates": 100}, {"results": 4}),
    "two_drivers": ({"num_trials": 6, "num_updates": 40}, {"finished lines": 6}),
    "stopped_workers": (
        {"num_stops": 1, "num_updates": 200, "lease": 1.0},
        {"holders waited for": 1},
    ),
    "stopped_host": ({"num_stops": 1, "num_updates": 300, "lease": 1.0}, {"losses noticed": 1}),
}
"""What is done to a sweep → how often, and counts that it must end with."""


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLS)
def test_a_sweep_that_is_killed_or_stopped_does_nothing_twice(tmp_path, name):
    options, least = KILLS[name]
    counts = SCENARIOS[name](tmp_path, **options)
    print(counts)
    assert counts | least == counts
    assert counts.get("kills", 2) >= 2
    assert counts.get("times off") == counts.get("by the late one")


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_node_cost_nothing(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed: pip install -e '.[ray]'")
    from scenarios.ray_cluster import ray_cluster

    counts = ray_cluster(tmp_path, num_trials=8, iterations=10_000, limit_seconds=200)
    print(counts)
    assert counts["trials"] == counts["identical"] == 8
    assert counts["workers killed"] == counts["nodes killed"] == 1
    assert counts["taken up again"] >= 1
