"""The fire scenario of the Ray cluster, in small."""

from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: pip install -e '.[ray]'")


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_node_cost_nothing(tmp_path: Path) -> None:
    from scenarios.ray_cluster import ray_cluster

    counts = ray_cluster(tmp_path, num_trials=8, iterations=10_000, limit_seconds=200)
    print(counts)
    assert counts["trials"] == counts["identical"] == 8
    assert counts["workers killed"] == counts["nodes killed"] == 1
    assert counts["taken up again"] >= 1
