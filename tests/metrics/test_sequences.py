import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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


@st.composite
def pairs(draw, high=3):
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 7)))
    ids = arrays(np.int64, shape, elements=st.integers(0, high))
    return draw(ids), draw(ids)


def naive_distance(left, right):
    """Lowrance and Wagner (1975), the unrestricted distance, written from the paper."""
    far = len(left) + len(right)
    table = {(-1, -1): far}
    for i in range(len(left) + 1):
        table[i, -1], table[i, 0] = far, i
    for j in range(len(right) + 1):
        table[-1, j], table[0, j] = far, j
    last_row = dict.fromkeys([*left, *right], 0)
    for i in range(1, len(left) + 1):
        last_match = 0
        for j in range(1, len(right) + 1):
            k, m = last_row[right[j - 1]], last_match
            cost = 1
            if left[i - 1] == right[j - 1]:
                cost, last_match = 0, j
            table[i, j] = min(
                table[i - 1, j - 1] + cost,
                table[i, j - 1] + 1,
                table[i - 1, j] + 1,
                table[k - 1, m - 1] + (i - k - 1) + 1 + (j - m - 1),
            )
        last_row[left[i - 1]] = i
    return table[len(left), len(right)]


@given(pairs())
def test_token_accuracy_equals_counting(pair):
    predictions, targets = pair
    right = sum(p == t for p, t in zip(predictions.flat, targets.flat, strict=True))
    assert token_accuracy(predictions, targets) == pytest.approx(right / targets.size)


@given(pairs(high=1))
def test_sequence_accuracy_equals_counting(pair):
    predictions, targets = pair
    right = sum(p == t for p, t in zip(predictions.tolist(), targets.tolist(), strict=True))
    assert sequence_accuracy(predictions, targets) == pytest.approx(right / len(targets))


@given(pairs())
def test_distance_equals_an_independent_version(pair):
    predictions, targets = pair
    each = [
        naive_distance(p, t) for p, t in zip(predictions.tolist(), targets.tolist(), strict=True)
    ]
    assert edit_distances(predictions, targets).tolist() == each


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
    assert naive_distance(left, right) == expected


@pytest.mark.parametrize("metric", CHECKED, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 4)), ((2, 3), (1, 3)), ((3,), (3,)), ((0, 3),) * 2]
)
def test_arrays_that_do_not_fit_are_refused(metric, shapes):
    # Without the shape checks that only tests have.
    bare = inspect.unwrap(metric)
    with pytest.raises(ConfigError, match="one shape"):
        bare(*(np.zeros(shape, dtype=np.int64) for shape in shapes))
