"""The parts of tasks by themselves, and what is refused of their combinations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED
from pernn.lab.tasks import (
    Cued,
    DelayedAddition,
    Distinct,
    DualFrequency,
    Feedback,
    Fixed,
    HeldOut,
    HoldAndEmit,
    Length,
    NonRepeating,
    OneTarget,
    Predecessor,
    PredecessorQueryConfig,
    Query,
    Reverse,
    ReverseOrderingConfig,
    Rule,
    Same,
    Sort,
    Source,
    SyntheticTask,
    Uniform,
    UniformRange,
    Unprompted,
)


@pytest.mark.parametrize("source", [Uniform, NonRepeating, "cued"])
def test_the_number_of_sequences_is_that_of_those_that_occur(source):
    build = source if source != "cued" else lambda **size: Cued(source=NonRepeating(**size))
    for vocab_size, length in ((2, 1), (3, 3), (4, 3), (5, 2)):
        length += source == "cued"
        if source == "cued" and length < 3:
            continue
        found = build(vocab_size=vocab_size)
        words = np.random.Generator(np.random.Philox(5)).integers(
            2**64, size=(4000, length), dtype=np.uint64
        )
        assert len(np.unique(found.draw(words), axis=0)) == found.num_sequences(length)


@pytest.mark.parametrize("build", [Uniform, NonRepeating, Fixed])
def test_too_small_a_part_is_refused(build):
    (name,) = build.__dataclass_fields__
    with pytest.raises(ConfigError, match=f"{name} must be at least"):
        build(**{name: 0})


def test_none_held_out_is_refused_even_of_very_many_sequences():
    with pytest.raises(ConfigError, match="num_held_out must be at least 1, got 0"):
        SyntheticTask(
            name="huge",
            rule=Reverse(),
            source=Uniform(vocab_size=64),
            length=Fixed(length=5000),
            held_out=Distinct(num_held_out=0),
        )


@pytest.mark.parametrize(("vocab_size", "length"), [(5, 5), (6, 3), (40, 2)])
def test_distinct_ids_are_uniform_over_all_ordered_choices(vocab_size, length):
    source = NonRepeating(vocab_size=vocab_size)
    possible = source.num_sequences(length)
    words = np.random.Generator(np.random.Philox(7)).integers(
        2**64, size=(40 * possible, length), dtype=np.uint64
    )
    drawn = source.draw(words)
    assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == possible
    assert stats.chisquare(counts).pvalue > 1e-3


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


def test_the_parts_say_what_they_are():
    for rule in (Reverse(), Sort(), Same(), DelayedAddition(vocab_size=3), Predecessor()):
        assert isinstance(rule, Rule)
    for feedback in (Query(), Unprompted(), HoldAndEmit(hold_time=1)):
        assert isinstance(feedback, Feedback)
    for source in (Uniform(vocab_size=3), Cued(source=NonRepeating(vocab_size=3))):
        assert isinstance(source, Source)
    for length in (Fixed(length=3), UniformRange(min_length=2, longest=3)):
        assert isinstance(length, Length)
    for held_out in (Distinct(), OneTarget()):
        assert isinstance(held_out, HeldOut)
    assert Query().num_queries(5) == 5
    assert Uniform(vocab_size=3).num_sequences(4) == 81
    assert Reverse().targets(np.array([[8, 29, 2, 11]])).tolist() == [[11, 2, 29, 8]]


def test_more_distinct_ids_than_there_are_is_refused():
    message = "vocab_size must be at least the length: there are no 16 distinct ids among 15"
    with pytest.raises(ConfigError, match=message):
        PredecessorQueryConfig(vocab_size=15)
    PredecessorQueryConfig(vocab_size=16)
    with pytest.raises(ConfigError, match="length: expected at least 2"):
        PredecessorQueryConfig(length=1)


def composed(rule, source, length, feedback):
    return SyntheticTask(
        name="odd",
        rule=rule,
        source=source,
        length=Fixed(length=length) if isinstance(length, int) else length,
        feedback=feedback,
        held_out=Distinct(num_held_out=1),
    )


def test_parts_that_do_not_fit_are_refused_with_the_reason():
    uniform = Uniform(vocab_size=4)
    with pytest.raises(ConfigError, match="as many addends as tokens, got 5 in all"):
        composed(DelayedAddition(vocab_size=4), uniform, 5, Unprompted()).stream(1).train(0, 2)
    with pytest.raises(ConfigError, match="must repeat one of the ids before it, not the first"):
        composed(Predecessor(), uniform, 5, Unprompted()).stream(1).train(0, 8)
    with pytest.raises(ConfigError, match="at least 2 distinct ids and the repeated one"):
        composed(Predecessor(), Cued(source=NonRepeating(vocab_size=4)), 2, Unprompted())
    with pytest.raises(ConfigError, match="hold_time must be at least 0, got -1"):
        HoldAndEmit(hold_time=-1)


@pytest.mark.parametrize(
    ("rule", "source", "feedback", "said"),
    [
        (DelayedAddition(vocab_size=9), "uniform", Query(), "DelayedAddition has not"),
        (Predecessor(), "uniform", Query(), "one answer for each input, .* Predecessor has not"),
        (Reverse(), "cued", Query(), "cannot come from Cued: a shorter sequence would lose"),
        (Reverse(), "uniform", Unprompted(), "need the feedback Query: .*; got Unprompted"),
        (Reverse(), "uniform", HoldAndEmit(hold_time=2), "got HoldAndEmit"),
    ],
)
def test_parts_that_make_no_sense_with_several_lengths_are_refused(rule, source, feedback, said):
    ids = NonRepeating(vocab_size=9)
    source = Cued(source=ids) if source == "cued" else Uniform(vocab_size=9)
    with pytest.raises(ConfigError, match=said):
        composed(rule, source, UniformRange(min_length=3, longest=5), feedback)


@pytest.mark.parametrize(("min_length", "longest"), [(0, 3), (4, 3), (-1, -1)])
def test_no_lengths_are_refused(min_length, longest):
    with pytest.raises(
        ConfigError, match=rf"min_length must lie in 1 … {longest}, .* got {min_length}"
    ):
        UniformRange(min_length=min_length, longest=longest)


@pytest.mark.parametrize("source", [Uniform, NonRepeating, "dual"])
@pytest.mark.parametrize("rule", [Reverse(), Sort(), Same()])
def test_other_rules_and_sources_work_with_several_lengths(rule, source):
    build = (
        (lambda vocab_size: DualFrequency(vocab_size=vocab_size, rare_share=0.3))
        if (source == "dual")
        else source
    )
    lengths = UniformRange(min_length=2, longest=5)
    task = composed(rule, build(vocab_size=8), lengths, Query())
    batch = task.stream(1).train(0, 40)
    assert {*np.unique((batch.tokens[:, :5] < 8).sum(axis=1))} == {2, 3, 4, 5}
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        inputs = tokens[tokens < 8]
        assert (tokens[len(inputs) :] == 8).all()
        expected = rule.targets(inputs[None])[0]
        due = slice(len(inputs) - 2, 2 * len(inputs) - 2)
        np.testing.assert_array_equal(targets[due], expected)
        assert (np.delete(targets, np.arange(due.start, due.stop)) == UNSCORED).all()


def test_ids_need_two_halves_and_some_share_of_each():
    with pytest.raises(ConfigError, match=r"vocab_size must be even, .* got 7"):
        DualFrequency(vocab_size=7, rare_share=0.5)
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(ConfigError, match=rf"rare_share must lie between 0 and 1, got {share}"):
            DualFrequency(vocab_size=8, rare_share=share)


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


@pytest.mark.parametrize("length", [8, pytest.param(11, marks=pytest.mark.slow)])
def test_one_sequence_left_to_train_on_is_found(length):
    """The extreme: all sequences of two tokens but one are held out."""
    config = ReverseOrderingConfig(vocab_size=2, length=length, num_held_out=2**length - 1)
    stream = config.build().stream(1)
    held_out = set(map(tuple, stream.test().tokens.tolist()))
    assert len(held_out) == 2**length - 1
    (left,) = stream.train(0, 1).tokens.tolist()
    assert tuple(left) not in held_out
