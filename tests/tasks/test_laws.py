"""Every task through the same invariants: rule, disjoint splits, pure functions of the address."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, BatchStream
from pernn.lab.tasks import TASKS, ReverseOrderingConfig
from tasks.kinds import (
    ELSEWHERE,
    NAIVE,
    SHAPES,
    SPACES,
    alike,
    changed,
    every_sequence,
    every_task,
    held,
    num_test,
    rows,
    seeds,
    space,
    steps,
    tasks,
)


def test_every_task_has_a_naive_rule():
    assert set(NAIVE) == set(SHAPES) == set(SPACES) == set(TASKS.names()) - ELSEWHERE


@given(tasks(), seeds, steps)
def test_targets_equal_the_naive_rule(config, seed, step):
    stream = config.build().stream(seed)
    assert isinstance(stream, BatchStream)
    for batch in (stream.train(step, 5), stream.test()):
        expected = np.array([NAIVE[config.kind](config, row) for row in batch.tokens.tolist()])
        if config.kind == "dual_frequency" and len(batch.tokens) > 5:
            asked = batch.targets != UNSCORED
            assert (asked.sum(axis=1) == 1).all()
            expected[~asked] = UNSCORED
        np.testing.assert_array_equal(batch.targets, expected)


@given(tasks(), seeds, steps)
def test_shapes_types_and_range(config, seed, step):
    task = config.build()
    stream = task.stream(seed)
    num_tokens, num_queries, num_extra_rows = SHAPES[config.kind](config)
    assert len(task.extra_rows) == num_extra_rows
    for batch, size in ((stream.train(step, 3), 3), (stream.test(), num_test(config))):
        assert batch.tokens.shape == (size, num_tokens)
        assert batch.num_queries == num_queries
        assert num_tokens + num_queries == task.num_steps
        assert batch.targets.shape == (size, task.num_scored)
        assert {batch.tokens.dtype, batch.targets.dtype} == {np.dtype(np.int64)}
        assert batch.tokens.min() >= 0
        assert batch.tokens.max() < config.vocab_size + num_extra_rows
        # Row K is the query's, never a token's, but where queries differ by sequence or are none.
        shows = config.kind in {"variable_length", "autoregressive"}
        assert (batch.tokens == config.vocab_size).any() == shows
        assert batch.targets[batch.targets != UNSCORED].min() >= 0
        assert batch.targets.max() < task.vocab_size == config.vocab_size
        assert batch.targets.flags.c_contiguous


@given(tasks(), seeds, st.lists(steps, min_size=1, max_size=4))
def test_train_and_test_are_disjoint(config, seed, some_steps):
    stream = config.build().stream(seed)
    held_out = rows(stream.test())
    assert len(held_out) == num_test(config)
    for step in some_steps:
        assert not rows(stream.train(step, 30)) & held_out


@every_task
# Few left are drawn slowly, from all: the fewer, the rarer the sequence that is looked for.
@pytest.mark.parametrize("left", ["half", 64, pytest.param(8, marks=pytest.mark.slow)])
def test_disjoint_when_half_or_nearly_all_sequences_are_held_out(kind, left):
    config = space(kind, left)
    stream = config.build().stream(111)
    held_out = rows(stream.test())
    num_left = SPACES[kind][1] - num_test(config)
    assert len(held_out) == num_test(config)
    shown = set()
    for step in range(150):
        # Drawing is again and again until all are allowed: few large batches take less time.
        shown |= rows(stream.train(step, num_left))
        if len(shown) == num_left:
            break
    assert not shown & held_out
    # Everything that may be shown is shown, sooner or later.
    assert len(shown) == num_left


@every_task
def test_holding_out_everything_is_refused(kind):
    sizes, possible = SPACES[kind]
    message = rf"only {possible:,} sequences of \d+ tokens exist"
    match kind:
        case "variable_length":
            possible, message = 256, "only 256 sequences of 8 tokens exist"
        case "dual_frequency":
            possible, message = 7, "needs 35 distinct sequences of one class, .* only 32 exist"
    with pytest.raises(ConfigError, match=message):
        TASKS.find(kind)(**sizes, **held(kind, possible))


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


@every_task
def test_every_part_of_the_address_matters(kind):
    sizes = {"kind": kind, "vocab_size": 1000, "length": 8, **held(kind, 64)}
    if kind == "variable_length":
        sizes["min_length"] = 6
    if kind == "dual_frequency":
        sizes["rare_share"] = 0.5
    task = TASKS.validate(sizes)
    base = task.build().stream(1)
    batches = [
        base.train(0, 64),
        base.train(1, 64),
        base.test(),
        task.build().stream(2).train(0, 64),
        task.build().stream(2).test(),
    ]
    names = set(type(task).model_fields) - {"kind"}
    for name in names:
        other = changed(task, name)
        batches.append(other.build().stream(1).train(0, 64))
        assert len(batches[-1].tokens) == 64
    # Cut to one length, as other tasks may be longer.
    shown = [row[:6] for batch in batches for row in rows(batch)]
    assert len(shown) == (3 + len(names)) * 64 + 2 * num_test(task)
    if kind != "dual_frequency":  # whose test sequences come in pairs
        assert len(shown) == len(set(shown))


@every_task
def test_whatever_the_data_depend_on_stands_in_the_name(kind):
    config = TASKS.validate({"kind": kind})
    fields = set(type(config).model_fields) - {"kind"}
    names = {config.name, *(changed(config, field).name for field in fields)}
    assert len(names) == 1 + len(fields)


@every_task
def test_held_out_sequences_are_distinct_and_always_the_same(kind):
    config = space(kind, "half")
    first, second = config.build().stream(5), config.build().stream(5)
    second.train(3, 10)
    assert len(rows(first.test())) == num_test(config)
    np.testing.assert_array_equal(first.test().tokens, second.test().tokens)


@pytest.mark.parametrize("values", [{"vocab_size": 1}, {"vocab_size": 0}, {"length": 0}])
def test_too_small_a_task_is_refused(values):
    with pytest.raises(ConfigError, match=f"{next(iter(values))}: expected (at least|more than)"):
        ReverseOrderingConfig(**values)


@pytest.mark.parametrize("num_held_out", [8, 9, 2**20])
def test_too_many_held_out_are_refused(num_held_out):
    message = r"num_held_out must lie in 1 … 7: only 8 sequences of 3 tokens exist"
    with pytest.raises(ConfigError, match=message):
        ReverseOrderingConfig(vocab_size=2, length=3, num_held_out=num_held_out)


@pytest.mark.parametrize("left", ["half", 120, pytest.param(30, marks=pytest.mark.slow)])
@every_task
def test_training_and_held_out_sequences_are_as_likely_as_they_should_be(kind, left):
    config = space(kind, left)
    stream = config.build().stream(7)
    num_left = SPACES[kind][1] - num_test(config)
    size = 1000 if num_left > 500 else num_left // 2
    shown = np.concatenate([stream.train(step, size).tokens for step in range(16)])
    found, counts = np.unique(shown, axis=0, return_counts=True)
    counts = np.pad(counts, (0, num_left - len(counts)))
    expected = np.full(num_left, len(shown) / num_left)
    if kind in {"variable_length", "dual_frequency"}:
        seen = dict(zip(map(tuple, found.tolist()), counts, strict=False))
        chances = dict(every_sequence(config))
        for row in rows(stream.test()):
            del chances[row]
        counts = np.array([seen.get(row, 0) for row in chances])
        expected = np.array(list(chances.values())) / sum(chances.values()) * len(shown)
    assert len(expected) == num_left
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    if left != "half":
        return
    # Which ones are held out depends on the seed alone: over seeds, all alike equally often.
    config = space(kind, "most")
    drawn = [
        tuple(row) for n in range(100) for row in config.build().stream(n).test().tokens.tolist()
    ]
    groups = {}
    for row, count in Counter(drawn).items():
        groups.setdefault(alike(config, row), []).append(count)
    for (_, possible), counts in groups.items():
        counts = np.pad(counts, (0, possible - len(counts)))
        assert stats.chisquare(counts).pvalue > 1e-3 / len(groups)


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


@every_task
def test_the_docstrings_picture_is_true(kind):
    found = TASKS.find(kind)
    sizes, shown, expected = re.search(
        r"Picture \((.*)\):\n +input +(.*)\n +target +(.*)\n", found.__doc__
    ).groups()
    sizes = {key: int(number) for key, number in re.findall(r"(\w+) = (\d+)", sizes)}
    values = {"L": "length", "K": "vocab_size"}
    sizes = {values.get(key, key): number for key, number in sizes.items()}
    config = found(**sizes, **held(kind, 1))
    # Aligned: every word of one row ends where one of the other does.
    ends = [[match.end() for match in re.finditer(r"\S+", row)] for row in (shown, expected)]
    shown, expected = shown.split(), expected.split()
    assert np.ptp(np.subtract(*ends)) == 0
    num_tokens, num_queries, _ = SHAPES[kind](config)
    if kind == "variable_length":
        filling = num_tokens - len(shown)
        shown, expected = shown + ["?"] * filling, expected + ["."] * filling
    assert len(shown) == len(expected) == num_tokens + num_queries
    signs = {"HOLD": config.vocab_size + 1, "?": config.vocab_size, "DUMMY": config.vocab_size}
    tokens = [signs[word] if word in signs else int(word) for word in shown[:num_tokens]]
    assert set(shown[num_tokens:]) <= {"?", "EMIT"}
    answers = NAIVE[kind](config, tokens)
    assert set(expected[: -len(answers)]) <= {"."}
    assert answers == [UNSCORED if w == "." else int(w) for w in expected[-len(answers) :]]


@pytest.mark.parametrize(
    ("kind", "expected", "num_steps"),
    [
        ("reverse_ordering", (64, 64, 1024), 128),
        ("sorting", (64, 64, 1024), 128),
        ("delayed_addition", (64, 16, 1024), 32),
        ("predecessor_query", (64, 16, 1024), 17),
        ("copying_memory", (8, 10, 1024), 80),
        ("variable_length", (16_384, 64, 33 * 1024), 128),
        ("dual_frequency", (64, 64, 4096), 128),
        ("autoregressive", (64, 64, 1024), 128),
    ],
)
def test_defaults_are_the_papers(kind, expected, num_steps):
    config = TASKS.validate({"kind": kind})
    assert (config.vocab_size, config.length, num_test(config)) == expected
    assert config.build().num_steps == num_steps
