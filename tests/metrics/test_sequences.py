"""Distances that are known, and what is refused; tasks/test_metrics.py has the other measures."""

import inspect

import numpy as np
import pytest

from pernn.errors import ConfigError
from pernn.lab.metrics import (
    ascending_pair_share,
    ascending_sequence_share,
    edit_distances,
    sequence_accuracy,
    token_accuracy,
)

CHECKED = [
    token_accuracy,
    sequence_accuracy,
    ascending_pair_share,
    ascending_sequence_share,
    edit_distances,
]


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


@pytest.mark.parametrize("metric", CHECKED, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 4)), ((2, 3), (1, 3)), ((3,), (3,)), ((0, 3),) * 2]
)
def test_arrays_that_do_not_fit_are_refused(metric, shapes):
    # Without the shape checks that only tests have.
    bare = inspect.unwrap(metric)
    with pytest.raises(ConfigError, match="one shape"):
        bare(*(np.zeros(shape, dtype=np.int64) for shape in shapes))
