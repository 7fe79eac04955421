"""Wrong answers by where their token stands in the input: by hand, and what guessing gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.analysis import recall_errors


def test_a_transposition_an_intrusion_and_a_double_by_hand():
    inputs = np.array([[1, 2, 3, 2], [4, 5, 6, 7], [0, 1, 2, 3]])
    targets = inputs[:, ::-1].copy()
    answers = targets.copy()
    # Asked for step 4, 2, 1 …
    answers[0, 1] = 2  # for 3 at step 3: 2 stands at steps 2 and 4, one off
    answers[1, 0] = 4  # for 7 at step 4: step 1 is three off
    answers[1, 3] = 9  # no token of the input
    answers[2, 0] = 1  # for 3 at step 4: step 2 is two off
    found = recall_errors(inputs, targets, answers, vocab_size=10)
    assert found.counts.tolist() == [1, 1, 1, 1]
    assert (found.num_wrong, found.num_answers) == (4, 12)
    assert found.accuracy == pytest.approx(8 / 12)
    assert found.shares.tolist() == [0.25] * 4
    # For the 3 beside both 2s: one off 2, two off 1, none else of nine ids.
    assert recall_errors(inputs[:1], targets[:1], answers[:1], 10).expected.tolist() == (
        pytest.approx([7 / 9, 1 / 9, 1 / 9, 0])
    )


def test_what_is_not_asked_for_and_nothing_wrong_have_no_share():
    inputs = np.arange(6).reshape(2, 3)
    found = recall_errors(inputs, inputs, inputs, 6)
    assert (found.accuracy, found.num_wrong) == (1.0, 0)
    assert found.shares.tolist() == found.chances.tolist() == [0.0] * 3
    inputs = np.array([[5, 6, 7], [1, 2, 3]])
    targets = np.array([[-100, -100, 5], [-100, -100, 1]])
    found = recall_errors(inputs, targets, np.array([[0, 0, 6], [0, 0, 1]]), 8)
    assert (found.num_answers, found.counts.tolist()) == (2, [0, 1, 0])


@given(seed=st.integers(0, 2**32 - 1), vocab_size=st.integers(3, 6), length=st.integers(2, 5))
def test_the_chance_is_the_mean_over_all_wrong_ids(seed, vocab_size, length):
    drawn = np.random.default_rng(seed)
    inputs = drawn.integers(vocab_size, size=(40, length))
    targets = inputs[:, ::-1]
    shifts = range(1, vocab_size)
    every = [recall_errors(inputs, targets, (targets + s) % vocab_size, vocab_size) for s in shifts]
    mean = sum(found.counts for found in every) / len(every)
    for found in every:
        assert found.expected == pytest.approx(mean)
        assert found.shares.sum() == pytest.approx(1)
        assert found.chances.sum() == pytest.approx(1)
