"""What measures say of answers that are known."""

import numpy as np
import pytest

from pernn.lab.interfaces import UNSCORED, Batch, Predictions
from pernn.lab.metrics import edit_distances
from pernn.lab.tasks import Ascending, ByLength, Sequences, SolvedOrStuck

U = UNSCORED


def measured(measure, predictions, targets):
    predictions, targets = np.array(predictions), np.array(targets)
    batch = Batch(np.zeros_like(targets), 0, targets)
    return measure.measure(Predictions(predictions, np.zeros(targets.shape)), batch)


def test_what_is_not_scored_counts_nowhere_and_lengths_are_told_apart():
    found = measured(Sequences(), [[1, 2, 9, 9], [9, 3, 4, 0]], [[1, 2, U, U], [U, 3, 4, 5]])
    expected = {
        "token_accuracy": 4 / 5,
        "sequence_accuracy": 1 / 2,
        "damerau_levenshtein": 1 / 2,
        "damerau_levenshtein_share": 1 / 6,
    }
    assert expected.items() <= found.metrics.items()
    assert set(measured(Ascending(), [[9, 1, 2]], [[U, 1, 2]]).metrics.values()) == {1}
    assert set(measured(Ascending(), [[9], [1]], [[1], [2]]).metrics.values()) == {1}
    targets = [[1, 2, U], [1, U, U], [3, U, U], [1, 1, 1]]
    found = measured(ByLength(), [[1, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]], targets)
    assert found.metrics == {}
    assert found.tables["by_length"] == {
        "length": [1, 2, 3],
        "token_accuracy": [0.5, 0.5, 1.0],
        "num_sequences": [2, 1, 1],
    }


@pytest.mark.parametrize(
    ("outputs", "pairs", "sequences"),
    [
        ([[1, 2, 3], [4, 4, 9]], 1, 1),
        ([[1, 3, 2], [4, 4, 9]], 3 / 4, 1 / 2),
        ([[3, 2, 1], [2, 1, 1]], 1 / 4, 0),
    ],
)
def test_ascending_outputs_are_counted_right_or_wrong(outputs, pairs, sequences):
    assert measured(Ascending(), outputs, [[0, 0, 0]] * 2).metrics == {
        "ascending_pair_share": pairs,
        "ascending_sequence_share": sequences,
    }


@pytest.mark.parametrize(
    ("num_right", "expected"),
    [(1000, (1, 0)), (990, (1, 0)), (989, (0, 0)), (135, (0, 1)), (0, (0, 1))],
)
def test_a_trial_is_solved_stuck_or_neither(num_right, expected):
    targets = np.zeros((10, 100), dtype=np.int64)
    predictions = np.ones_like(targets)
    predictions.reshape(-1)[:num_right] = 0
    found = measured(SolvedOrStuck(chance=0.125), predictions, targets).metrics
    assert (found["solved"], found["stuck"]) == expected
    assert found["solved_or_stuck"] == sum(expected)


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
