"""Distances that are known; tasks/test_metrics.py has the other measures."""

import numpy as np
import pytest

from pernn.lab.metrics import edit_distances


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([0, 1, 2], [0, 2, 1], 1),
        # The unrestricted variant: 3 here, where the restricted one needs 4.
        ([2, 0, 7, 8], [0, 1, 2, 7], 3),
        ([1, 2, 3, 4], [2, 3, 4, 1], 2),
        ([70000, 2], [2, 70000], 1),
    ],
)
def test_known_distances(left, right, expected):
    assert edit_distances(np.array([left]), np.array([right])).tolist() == [expected]
