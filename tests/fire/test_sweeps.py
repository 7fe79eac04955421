"""The fire in small: the scenarios of `benchmarks/fire.py` with small counts."""

from pathlib import Path

import pytest
from scenarios import sweeps

pytestmark = pytest.mark.slow


def test_killed_at_random_every_trial_is_done_once_in_the_same_bits(tmp_path: Path) -> None:
    counts = sweeps.random_kills(tmp_path, num_trials=4, num_kills=4, num_updates=100)
    print(counts)
    assert counts["results"] == 4
    assert counts["kills"] >= 2


def test_two_drivers_share_a_directory_though_their_clocks_differ(tmp_path: Path) -> None:
    counts = sweeps.two_drivers(tmp_path, num_trials=6, num_updates=40)
    print(counts)
    assert counts["finished lines"] == 6
    assert counts["times off"] == counts["by the late one"]


def test_a_stopped_worker_does_nothing_twice(tmp_path: Path) -> None:
    counts = sweeps.stopped_workers(tmp_path, num_stops=1, num_updates=200, lease=1.0)
    print(counts)
    assert counts["holders waited for"] == 1


def test_a_stopped_host_notices_that_it_lost_its_lease(tmp_path: Path) -> None:
    counts = sweeps.stopped_host(tmp_path, num_stops=1, num_updates=300, lease=1.0)
    print(counts)
    assert counts["losses noticed"] == 1
