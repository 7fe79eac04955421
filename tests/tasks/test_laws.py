"""Every task through the same invariants: rule, disjoint splits, pure functions of the address."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pernn.errors import ConfigError
from pernn.interfaces import BatchStream
from pernn.tasks import (
    TASKS,
    Fixed,
    Query,
    Reverse,
    ReverseOrderingConfig,
    Rule,
    SyntheticTask,
    Uniform,
)


def naive_reverse(row):
    answer = []
    for token in row:
        answer.insert(0, token)
    return answer


NAIVE = {"reverse_ordering": naive_reverse}


@st.composite
def tasks(draw):
    vocab_size, length = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    most = min(vocab_size**length - 1, 40)
    return TASKS.find(draw(st.sampled_from(TASKS.names())))(
        vocab_size=vocab_size, length=length, num_held_out=draw(st.integers(1, most))
    )


seeds, steps = st.integers(0, 2**63 - 1), st.integers(0, 2**40)


def rows(batch):
    return set(map(tuple, batch.tokens.tolist()))


def test_every_task_has_a_naive_rule():
    assert set(NAIVE) == set(TASKS.names())


@given(tasks(), seeds, steps)
def test_targets_equal_the_naive_rule(config, seed, step):
    stream = config.build().stream(seed)
    assert isinstance(stream, BatchStream)
    for batch in (stream.train(step, 5), stream.test()):
        expected = [NAIVE[config.kind](row) for row in batch.tokens.tolist()]
        assert batch.targets.tolist() == expected


@given(tasks(), seeds, steps)
def test_shapes_types_and_range(config, seed, step):
    task = config.build()
    stream = task.stream(seed)
    for batch, size in ((stream.train(step, 3), 3), (stream.test(), config.num_held_out)):
        assert batch.tokens.shape == (size, config.length)
        assert batch.tokens.shape[1] + batch.num_queries == task.num_steps
        assert {batch.tokens.dtype, batch.targets.dtype} == {np.dtype(np.int64)}
        assert batch.tokens.min() >= 0
        assert batch.tokens.max() < task.vocab_size == config.vocab_size
        assert batch.targets.flags.c_contiguous


@given(tasks(), seeds, st.lists(steps, min_size=1, max_size=4))
def test_train_and_test_are_disjoint(config, seed, some_steps):
    stream = config.build().stream(seed)
    held_out = rows(stream.test())
    assert len(held_out) == config.num_held_out
    for step in some_steps:
        assert not rows(stream.train(step, 30)) & held_out


@pytest.mark.parametrize("num_held_out", [1024, 2047])
def test_disjoint_when_half_or_nearly_all_sequences_are_held_out(num_held_out):
    config = ReverseOrderingConfig(vocab_size=2, length=11, num_held_out=num_held_out)
    stream = config.build().stream(111)
    held_out = rows(stream.test())
    assert len(held_out) == num_held_out
    shown = set()
    for step in range(30 if num_held_out == 1024 else 1):
        shown |= rows(stream.train(step, 512 if num_held_out == 1024 else 4))
    assert not shown & held_out
    # Everything that may be shown is shown, sooner or later.
    assert len(shown) == 2048 - num_held_out


@settings(max_examples=25)
@given(tasks(), seeds, steps)
def test_a_pure_function_of_seed_and_step(config, seed, step):
    expected = config.build().stream(seed).train(step, 6)
    np.random.seed(0)  # noqa: NPY002 (global state must not matter)
    stream = config.build().stream(seed)
    stream.test()
    for other in (step + 1, 0, step + 7):
        stream.train(other, 3)
    again = stream.train(step, 6)
    np.testing.assert_array_equal(again.tokens, expected.tokens)
    again.tokens[:] = 0
    np.testing.assert_array_equal(stream.train(step, 6).tokens, expected.tokens)


@given(tasks(), seeds, steps)
def test_a_smaller_batch_is_a_prefix(config, seed, step):
    stream = config.build().stream(seed)
    whole = stream.train(step, 12).tokens
    for size in range(1, 12):
        np.testing.assert_array_equal(stream.train(step, size).tokens, whole[:size])


def test_every_part_of_the_address_matters():
    task = ReverseOrderingConfig(vocab_size=1000, length=8, num_held_out=64)
    other_task = ReverseOrderingConfig(vocab_size=1000, length=8, num_held_out=65)
    base = task.build().stream(1)
    batches = [
        base.train(0, 64),
        base.train(1, 64),
        base.test(),
        task.build().stream(2).train(0, 64),
        task.build().stream(2).test(),
        other_task.build().stream(1).train(0, 64),
    ]
    shown = [row for batch in batches for row in rows(batch)]
    assert len(shown) == len(set(shown)) == 6 * 64


def test_held_out_sequences_are_distinct_and_always_the_same():
    config = ReverseOrderingConfig(vocab_size=3, length=6, num_held_out=700)
    first, second = config.build().stream(5), config.build().stream(5)
    second.train(3, 10)
    assert len(rows(first.test())) == 700
    np.testing.assert_array_equal(first.test().tokens, second.test().tokens)


@pytest.mark.parametrize("values", [{"vocab_size": 1}, {"vocab_size": 0}, {"length": 0}])
def test_too_small_a_task_is_refused(values):
    with pytest.raises(ConfigError, match=f"{next(iter(values))}: Input should be greater"):
        ReverseOrderingConfig(**values)


@pytest.mark.parametrize("build", [Uniform, Fixed])
def test_too_small_a_part_is_refused(build):
    (name,) = build.__dataclass_fields__
    with pytest.raises(ConfigError, match=f"{name} must be at least"):
        build(**{name: 0})


@pytest.mark.parametrize("num_held_out", [8, 9, 2**20])
def test_too_many_held_out_are_refused(num_held_out):
    message = r"num_held_out must lie in 1 … 7: only 8 sequences of 3 tokens exist"
    with pytest.raises(ConfigError, match=message):
        ReverseOrderingConfig(vocab_size=2, length=3, num_held_out=num_held_out)


def test_none_held_out_is_refused_even_of_very_many_sequences():
    with pytest.raises(ConfigError, match="num_held_out must be at least 1, got 0"):
        SyntheticTask(
            name="huge",
            rule=Reverse(),
            source=Uniform(vocab_size=64),
            length=Fixed(length=5000),
            num_held_out=0,
        )


@pytest.mark.parametrize(("vocab_size", "length"), [(2, 12), (10, 4), (64, 3)])
def test_training_tokens_are_uniform_at_every_position(vocab_size, length):
    config = ReverseOrderingConfig(vocab_size=vocab_size, length=length, num_held_out=1)
    tokens = config.build().stream(7).train(0, 300 * vocab_size).tokens
    for position in range(length):
        counts = np.bincount(tokens[:, position], minlength=vocab_size)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_training_sequences_are_uniform_over_those_not_held_out():
    config = ReverseOrderingConfig(vocab_size=3, length=4, num_held_out=40)
    stream = config.build().stream(7)
    powers = 3 ** np.arange(4)
    counts = np.bincount(stream.train(0, 20_000).tokens @ powers, minlength=81)
    allowed = np.ones(81, dtype=bool)
    allowed[stream.test().tokens @ powers] = False
    assert not counts[~allowed].any()
    assert stats.chisquare(counts[allowed]).pvalue > 1e-3


def test_held_out_sequences_are_uniform():
    config = ReverseOrderingConfig(vocab_size=8, length=5, num_held_out=4000)
    tokens = config.build().stream(7).test().tokens
    for position in range(5):
        counts = np.bincount(tokens[:, position], minlength=8)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_every_held_out_row_is_recognised_and_hardly_any_other():
    stream = ReverseOrderingConfig(vocab_size=2**31, length=3).build().stream(3)
    assert stream.is_held_out(stream.test().tokens).all()
    changed = stream.test().tokens.copy()
    changed[:, 1] ^= 1
    assert not stream.is_held_out(changed).any()
    # Powers of two are the weak spot of a hash modulo 2⁶⁴.
    changed = stream.test().tokens.copy()
    changed[:, 1] ^= 2**30
    assert not stream.is_held_out(changed).any()


def test_the_parts_say_what_they_are():
    assert isinstance(Reverse(), Rule)
    assert Query().num_queries(5) == 5
    assert Uniform(vocab_size=3).num_sequences(4) == 81
    assert Reverse().targets(np.array([[8, 29, 2, 11]])).tolist() == [[11, 2, 29, 8]]


def test_defaults_are_the_papers():
    config = ReverseOrderingConfig()
    assert (config.vocab_size, config.length, config.num_held_out) == (64, 64, 1024)
    assert config.build().num_steps == 128
