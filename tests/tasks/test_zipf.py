"""Ids of a Zipf law: how often each comes, equal entropies, and accuracy by rank."""

import numpy as np
import pytest

from pernn.lab.experiments.dual_frequency import LAWS
from pernn.lab.interfaces import Batch, Predictions
from pernn.lab.tasks import ByRank, Zipf, ZipfConfig


def law(vocab_size, exponent):
    weights = np.arange(1, vocab_size + 1) ** -float(exponent)
    return weights / weights.sum()


@pytest.mark.parametrize(("vocab_size", "exponent"), [(2, 4), (16, 0), (28, 1), (355, 1.5)])
def test_ids_have_the_probabilities_of_the_law(vocab_size, exponent):
    bounds = Zipf(vocab_size=vocab_size, exponent=exponent).bounds
    assert bounds[-1] == 1
    np.testing.assert_allclose(np.diff(bounds, prepend=0), law(vocab_size, exponent), atol=2**-52)


def test_an_id_is_drawn_where_the_number_lies_in_its_part():
    source = Zipf(vocab_size=5, exponent=1.5)
    steps = (source.bounds[:-1] * 2**53).astype(np.uint64)
    at, below = ((numbers << np.uint64(11))[None] for numbers in (steps, steps - np.uint64(1)))
    np.testing.assert_array_equal(source.draw(at), [[1, 2, 3, 4]])
    np.testing.assert_array_equal(source.draw(below), [[0, 1, 2, 3]])
    ends = np.array([[0, 2**64 - 1]], dtype=np.uint64)
    np.testing.assert_array_equal(source.draw(ends), [[0, 4]])


def test_training_follows_the_law_and_rare_sequences_are_not_held_out():
    config = ZipfConfig(vocab_size=12, length=5, num_held_out=300, exponent=1.0)
    shown = config.build().stream(1).train(3, 20_000)
    np.testing.assert_array_equal(shown.targets, shown.tokens[:, ::-1])
    share = np.bincount(shown.tokens.ravel(), minlength=12) / shown.tokens.size
    # Held out are the likeliest sequences before all, so frequent ids are a little rarer.
    np.testing.assert_allclose(share, law(12, 1), atol=0.02)
    assert (np.diff(share) < 0).all()
    assert Zipf(vocab_size=16, exponent=0).num_sequences(2) == 256
    assert Zipf(vocab_size=2, exponent=4).num_sequences(10) == 2**3  # a third of a bit each
    held_out = ZipfConfig(vocab_size=2, length=10, exponent=4, num_held_out=7).build().stream(1)
    assert held_out.test().tokens.shape == (7, 10)


@pytest.mark.parametrize("entropy", LAWS)
def test_laws_of_the_experiment_say_as_much_and_no_other_size_comes_nearer(entropy):
    def distance(size, exponent):
        chances = law(size, exponent)
        return abs(np.exp(-chances @ np.log(chances)) / entropy - 1)

    for exponent, size in LAWS[entropy].items():
        assert distance(size, exponent) < 0.025
        assert distance(size, exponent) <= min(distance(size + one, exponent) for one in (-1, 1))


def test_accuracy_is_that_of_each_quarter_and_company():
    # Eight ids that are equally likely: 0 and 1 are the first quarter, 6 and 7 the last.
    measure = ByRank(source=Zipf(vocab_size=8, exponent=0)).measure
    inputs = np.array([[0, 2, 7], [6, 5, 4], [1, 7, 6]])
    batch = Batch(inputs, 3, inputs[:, ::-1].copy())
    wrong = batch.targets.copy()
    wrong[0, 2] = 5  # 0, whose company is 2 and 7
    wrong[1, 0] = 5  # 4, whose company is 6 and 5
    table = measure(Predictions(wrong, np.zeros((3, 3))), batch).tables["by_rank"]
    cells = zip(table["target"], table["disturbants"], strict=True)
    rows = {cell: row for row, cell in enumerate(cells)}
    assert {cell: table["num_tokens"][row] for cell, row in rows.items()} == {
        (1, "Mostly rare"): 1,  # 1 beside 7 and 6
        (3, "Mostly rare"): 2,  # 5 and 4
        (4, "Mostly frequent"): 1,  # 7 beside 0 and 2
        (4, "Mostly rare"): 1,  # 6 beside 5 and 4
    }
    assert table["token_accuracy"][rows[3, "Mostly rare"]] == 0.5
    assert table["token_accuracy"][rows[4, "Mostly frequent"]] == 1
