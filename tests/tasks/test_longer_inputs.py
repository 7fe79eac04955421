"""Inputs that are longer in the test: which lengths are shown, and none of them is known."""

import numpy as np

from pernn.encodings import Sinusoidal
from pernn.lab.interfaces import UNSCORED
from pernn.lab.tasks import LongerInputsConfig

SIZES = {"vocab_size": 5, "length": 4, "min_length": 2, "tested_lengths": (6, 7)}


def config(**changes):
    return LongerInputsConfig(**{**SIZES, "num_held_out": 20, "code_size": 6, **changes})


def inputs_of(batch, longest):
    return [[one for one in row if one < 5] for row in batch.tokens[:, :longest].tolist()]


def test_training_has_its_lengths_and_tests_have_longer_ones_too():
    task = config().build()
    stream = task.stream(1)
    assert (task.num_steps, task.num_scored, task.num_queries) == (14, 12, 0)
    shown, asked = stream.train(3, 500), stream.test()
    assert shown.tokens.shape == (500, 8)
    assert shown.targets.shape == (500, 6)
    assert asked.tokens.shape == (5 * 20, task.num_steps)
    assert asked.targets.shape == (5 * 20, task.num_scored)
    assert {*map(len, inputs_of(shown, 4))} == {2, 3, 4}
    assert [*map(len, inputs_of(asked, 7))] == [n for n in (2, 3, 4, 6, 7) for _ in range(20)]


def test_answers_are_the_inputs_in_reverse_right_after_them():
    stream = config().build().stream(1)
    for batch, longest in ((stream.train(0, 50), 4), (stream.test(), 7)):
        for row, answers in zip(inputs_of(batch, longest), batch.targets.tolist(), strict=True):
            first = len(row) - 2
            assert answers[first : first + len(row)] == row[::-1]
            rest = answers[:first] + answers[first + len(row) :]
            assert {*rest} <= {UNSCORED}


def test_training_shows_no_test_sequence_and_no_start_of_one():
    stream = config(vocab_size=3, num_held_out=4).build().stream(1)
    tested = stream.held_out
    known = {tuple(one for one in row[:4] if one < 3) for row in tested.tolist()}
    shown = {tuple(one for one in row if one < 3) for row in stream._inputs(0, 400).tolist()}
    assert len({*map(tuple, tested.tolist())}) == len(tested) == 5 * 4
    assert not shown & known
    assert len(shown) > 20


def test_an_onset_stands_beside_the_same_tokens():
    plain, coded = config().build().stream(1), config(codes="onset").build().stream(1)
    table = Sinusoidal(6)(1_024 + 14).numpy()
    for one, other in ((plain.train(2, 30), coded.train(2, 30)), (plain.test(), coded.test())):
        np.testing.assert_array_equal(other.tokens[:, :, 0], one.tokens)
        np.testing.assert_array_equal(other.targets, one.targets)
        for row in other.tokens[:, :, 1:]:
            (onset,) = np.flatnonzero(np.abs(table[:1_024] - row[0]).max(axis=1) < 1e-5)
            np.testing.assert_allclose(row, table[onset : onset + len(row)], atol=1e-6)
