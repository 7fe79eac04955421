"""The parts of tasks by themselves, and what is refused of their combinations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.lab.interfaces import UNSCORED, Predictions
from pernn.lab.tasks import (
    Cued,
    Distinct,
    DualFrequency,
    Fixed,
    NonRepeating,
    Predecessor,
    Query,
    Reverse,
    Same,
    Sort,
    SyntheticTask,
    Uniform,
    UniformRange,
    Unprompted,
    VocabularyExtensionConfig,
)
from refusals import refusals


@pytest.mark.parametrize(
    ("source", "length"),
    [
        *((kind(vocab_size=2), 1) for kind in (Uniform, NonRepeating)),
        *((kind(vocab_size=4), 3) for kind in (Uniform, NonRepeating)),
        (Cued(source=NonRepeating(vocab_size=3)), 4),
        (Cued(source=NonRepeating(vocab_size=5)), 3),
    ],
)
def test_the_number_of_sequences_is_that_of_those_that_occur(source, length):
    words = np.random.Generator(np.random.Philox(5)).integers(
        2**64, size=(4000, length), dtype=np.uint64
    )
    assert len(np.unique(source.draw(words), axis=0)) == source.num_sequences(length)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9), st.integers(0, 2**31 - 10))
def test_distinct_ids_are_those_picked_by_rank_from_a_list(values, more):
    # The list is what the ranks mean; only its beginning can matter to the naive version.
    vocab_size = max(2, len(values) + more % 50)
    free, expected = list(range(vocab_size)), []
    for step, value in enumerate(values):
        rank = int((value >> 11) * 2.0**-53 * (vocab_size - step))
        expected.append(free.pop(rank))
    drawn = NonRepeating(vocab_size=vocab_size).draw(np.array([values], dtype=np.uint64))
    assert drawn.tolist() == [expected]


def test_distinct_ids_of_a_very_large_vocabulary():
    words = np.array([[2**64 - 1] * 4, [0] * 4], dtype=np.uint64)
    drawn = NonRepeating(vocab_size=2**31).draw(words)
    assert drawn.tolist() == [[2**31 - 1 - n for n in range(4)], [0, 1, 2, 3]]


def composed(rule, source, length, feedback=Query(), held_out=Distinct(num_held_out=1)):  # noqa: B008
    length = Fixed(length=length) if isinstance(length, int) else length
    return SyntheticTask(
        name="odd", rule=rule, source=source, length=length, feedback=feedback, held_out=held_out
    )


FOUR, EIGHT = Uniform(vocab_size=4), DualFrequency(vocab_size=8, rare_share=0.3)
CUED = Cued(source=NonRepeating(vocab_size=4))
SEVERAL = UniformRange(min_length=2, longest=5)
test_parts_that_make_no_sense_are_refused_with_the_reason = refusals(
    (lambda: UniformRange(min_length=0, longest=3), "min_length must lie in 1 … 3, .* got 0"),
    (lambda: UniformRange(min_length=4, longest=3), "min_length must lie in 1 … 3, .* got 4"),
    (lambda: UniformRange(min_length=-1, longest=-1), "min_length must lie in 1 … -1, .* got -1"),
    (
        lambda: composed(Predecessor(), FOUR, 5, Unprompted()).stream(1).train(0, 8),
        "must repeat one of the ids before it, not the first",
    ),
    (lambda: composed(Predecessor(), CUED, 2, Unprompted()), "only 0 sequences of 2 tokens exist"),
)


@pytest.mark.parametrize("source", [Uniform(vocab_size=8), NonRepeating(vocab_size=8), EIGHT])
@pytest.mark.parametrize("rule", [Reverse(), Sort(), Same()])
def test_other_rules_and_sources_work_with_several_lengths(rule, source):
    batch = composed(rule, source, SEVERAL).stream(1).train(0, 40)
    assert {*np.unique((batch.tokens[:, :5] < 8).sum(axis=1))} == {2, 3, 4, 5}
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        inputs = tokens[tokens < 8]
        assert (tokens[len(inputs) :] == 8).all()
        expected = rule.targets(inputs[None])[0]
        due = slice(len(inputs) - 2, 2 * len(inputs) - 2)
        np.testing.assert_array_equal(targets[due], expected)
        assert (np.delete(targets, np.arange(due.start, due.stop)) == UNSCORED).all()


def test_as_many_are_held_out_of_each_length():
    tokens = composed(Same(), FOUR, SEVERAL, held_out=Distinct(num_held_out=9)).stream(1).test()
    counts = np.unique((tokens.tokens[:, :5] < 4).sum(axis=1), return_counts=True)
    assert np.array(counts).tolist() == [[2, 3, 4, 5], [9, 9, 9, 9]]


@pytest.mark.parametrize("share", [1 / 8, 1 / 4, 0.3, 1e-9, 1 - 1e-9, 5e-324])
@pytest.mark.parametrize("vocab_size", [2, 6, 2**31])
def test_the_least_and_the_greatest_word_stay_inside_their_halves(share, vocab_size):
    source, half = DualFrequency(vocab_size=vocab_size, rare_share=share), vocab_size // 2
    # The multiples of 2⁻⁵³ on both sides of the border between Frequent and Rare.
    border = int((1 - share) * 2**53)
    points = [0, *range(max(border - 2, 0), min(border + 3, 2**53)), 2**53 - 1]
    words = np.array([points], dtype=np.uint64) << np.uint64(11)
    (ids,) = source.draw(words)
    is_rare = np.array(points) * 2.0**-53 >= 1 - share
    assert ids.min() >= 0
    assert ids.max() < vocab_size
    np.testing.assert_array_equal(ids >= half, is_rare)
    assert (np.diff(ids) >= 0).all()


EXTENSION = VocabularyExtensionConfig(vocab_size=12, num_known=8, length=5, num_held_out=100)


def test_one_half_of_the_test_of_an_extension_has_new_ids_only_and_all_is_reversed():
    stream = EXTENSION.build().stream(111)
    tokens = stream.test().tokens
    assert tokens.shape == (200, 5)
    assert tokens[:100].min() == 8
    assert tokens[:100].max() == tokens[100:].max() == 11
    assert tokens[100:].min() == 0
    assert len(np.unique(tokens, axis=0)) == 200
    # Training shows all ids.
    assert np.unique(stream.train(0, 200).tokens).tolist() == list(range(12))
    stream = EXTENSION.build().stream(5)
    for batch in (stream.train(3, 20), stream.test()):
        assert batch.targets.tolist() == [row[::-1] for row in batch.tokens.tolist()]
        assert batch.num_queries == 5


def test_metrics_are_those_of_new_ids():
    stream = EXTENSION.build().stream(111)
    batch = stream.test()
    predictions = batch.targets.copy()
    predictions[100:, 0] += 1
    found = stream.measure(Predictions(predictions, np.zeros((200, 5))))
    assert found.metrics["token_accuracy"] == 1
    assert found.tables["by_ids"]["ids"] == ["new", "mixed"]
    assert found.tables["by_ids"]["token_accuracy"] == [1, 0.8]
    predictions[:100, 1:3] += 1
    found = stream.measure(Predictions(predictions, np.zeros((200, 5))))
    assert found.metrics["token_accuracy"] == pytest.approx(0.6)
    assert found.metrics["sequence_accuracy"] == 0
