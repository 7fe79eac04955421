"""Every task through the same invariants: rule, disjoint splits, pure functions of the address."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pernn.errors import ConfigError
from pernn.interfaces import BatchStream
from pernn.tasks import (
    TASKS,
    ReverseOrderingConfig,
)


def naive_reverse(config, tokens):
    answer = []
    for token in tokens:
        answer.insert(0, token)
    return answer


def naive_sorting(config, tokens):
    return [token for token in range(config.vocab_size) for _ in range(tokens.count(token))]


def naive_delayed_addition(config, tokens):
    answer = []
    for j in range(1, config.length + 1):
        total = tokens[config.length - j] + tokens[config.length + j - 1]
        while total >= config.vocab_size:
            total -= config.vocab_size
        answer.append(total)
    return answer


def naive_predecessor(config, tokens):
    *ids, asked = tokens
    assert len(set(ids)) == len(ids) == config.length
    for before, token in itertools.pairwise(ids):
        if token == asked:
            return [before]
    raise AssertionError("the query is none of the ids, or the first")


def naive_copying(config, tokens):
    for token in tokens[config.length :]:
        assert token == config.vocab_size + 1  # HOLD
    assert len(tokens) == config.length + config.hold_time
    return tokens[: config.length]


NAIVE = {
    "reverse_ordering": naive_reverse,
    "sorting": naive_sorting,
    "delayed_addition": naive_delayed_addition,
    "predecessor_query": naive_predecessor,
    "copying_memory": naive_copying,
}
# Kind → token steps, queries, extra rows, as the tables of the paper have them.
SHAPES = {
    "reverse_ordering": lambda c: (c.length, c.length, 1),
    "sorting": lambda c: (c.length, c.length, 1),
    "delayed_addition": lambda c: (2 * c.length, 0, 0),
    "predecessor_query": lambda c: (c.length + 1, 0, 0),
    "copying_memory": lambda c: (c.length + c.hold_time, c.length, 2 if c.hold_time else 1),
}
# Kind → a task of about a thousand sequences and their exact number.
SPACES = {
    "reverse_ordering": ({"vocab_size": 2, "length": 11}, 2048),
    "sorting": ({"vocab_size": 2, "length": 11}, 2048),
    "delayed_addition": ({"vocab_size": 2, "length": 5}, 1024),
    "predecessor_query": ({"vocab_size": 6, "length": 4}, 6 * 5 * 4 * 3 * 3),
    "copying_memory": ({"vocab_size": 2, "length": 11, "hold_time": 3}, 2048),
}
every_task = pytest.mark.parametrize("kind", TASKS.names())


def num_possible(kind, vocab_size, length):
    match kind:
        case "delayed_addition":
            return vocab_size ** (2 * length)
        case "predecessor_query":
            count = length - 1
            for used in range(length):
                count *= vocab_size - used
            return count
    return vocab_size**length


@st.composite
def tasks(draw):
    kind = draw(st.sampled_from(TASKS.names()))
    more = {}
    if kind == "predecessor_query":
        length = draw(st.integers(2, 12))
        vocab_size = draw(st.integers(length, 40))
    else:
        vocab_size, length = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    if kind == "copying_memory":
        more["hold_time"] = draw(st.integers(0, 5))
    most = min(num_possible(kind, vocab_size, length) - 1, 40)
    return TASKS.find(kind)(
        vocab_size=vocab_size, length=length, num_held_out=draw(st.integers(1, most)), **more
    )


def space(kind, num_held_out):
    return TASKS.find(kind)(**SPACES[kind][0], num_held_out=num_held_out)


seeds, steps = st.integers(0, 2**63 - 1), st.integers(0, 2**40)


def rows(batch):
    return set(map(tuple, batch.tokens.tolist()))


def test_every_task_has_a_naive_rule():
    assert set(NAIVE) == set(SHAPES) == set(SPACES) == set(TASKS.names())


@given(tasks(), seeds, steps)
def test_targets_equal_the_naive_rule(config, seed, step):
    stream = config.build().stream(seed)
    assert isinstance(stream, BatchStream)
    for batch in (stream.train(step, 5), stream.test()):
        expected = [NAIVE[config.kind](config, row) for row in batch.tokens.tolist()]
        assert batch.targets.tolist() == expected


@given(tasks(), seeds, steps)
def test_shapes_types_and_range(config, seed, step):
    task = config.build()
    stream = task.stream(seed)
    num_tokens, num_queries, num_extra_rows = SHAPES[config.kind](config)
    assert task.num_extra_rows == num_extra_rows
    for batch, size in ((stream.train(step, 3), 3), (stream.test(), config.num_held_out)):
        assert batch.tokens.shape == (size, num_tokens)
        assert batch.num_queries == num_queries
        assert num_tokens + num_queries == task.num_steps
        assert batch.targets.shape == (size, task.num_scored)
        assert {batch.tokens.dtype, batch.targets.dtype} == {np.dtype(np.int64)}
        assert batch.tokens.min() >= 0
        assert batch.tokens.max() < config.vocab_size + num_extra_rows
        # Row K is the query's, never a token's.
        assert not (batch.tokens == config.vocab_size).any()
        assert batch.targets.min() >= 0
        assert batch.targets.max() < task.vocab_size == config.vocab_size
        assert batch.targets.flags.c_contiguous


@given(tasks(), seeds, st.lists(steps, min_size=1, max_size=4))
def test_train_and_test_are_disjoint(config, seed, some_steps):
    stream = config.build().stream(seed)
    held_out = rows(stream.test())
    assert len(held_out) == config.num_held_out
    for step in some_steps:
        assert not rows(stream.train(step, 30)) & held_out


@every_task
@pytest.mark.parametrize("most", [False, True], ids=["half", "all_but_8"])
def test_disjoint_when_half_or_nearly_all_sequences_are_held_out(kind, most):
    possible = SPACES[kind][1]
    num_held_out = possible - 8 if most else possible // 2
    stream = space(kind, num_held_out).build().stream(111)
    held_out = rows(stream.test())
    assert len(held_out) == num_held_out
    shown = set()
    for step in range(16 if most else 30):
        shown |= rows(stream.train(step, 4 if most else 512))
    assert not shown & held_out
    # Everything that may be shown is shown, sooner or later.
    assert len(shown) == possible - num_held_out


@every_task
def test_holding_out_everything_is_refused(kind):
    possible = SPACES[kind][1]
    with pytest.raises(ConfigError, match=rf"only {possible:,} sequences of \d+ tokens exist"):
        space(kind, possible)


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
    sizes = {"kind": kind, "vocab_size": 1000, "length": 8}
    task = TASKS.validate({**sizes, "num_held_out": 64})
    other_task = TASKS.validate({**sizes, "num_held_out": 65})
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


@every_task
def test_whatever_the_data_depend_on_stands_in_the_name(kind):
    config = TASKS.validate({"kind": kind})
    names = {config.name}
    fields = set(type(config).model_fields) - {"kind"}
    for field in fields:
        names.add(config.override({field: getattr(config, field) + 1}).name)
    assert len(names) == 1 + len(fields)


@every_task
def test_held_out_sequences_are_distinct_and_always_the_same(kind):
    config = space(kind, 700)
    first, second = config.build().stream(5), config.build().stream(5)
    second.train(3, 10)
    assert len(rows(first.test())) == 700
    np.testing.assert_array_equal(first.test().tokens, second.test().tokens)


@pytest.mark.parametrize("values", [{"vocab_size": 1}, {"vocab_size": 0}, {"length": 0}])
def test_too_small_a_task_is_refused(values):
    with pytest.raises(ConfigError, match=f"{next(iter(values))}: Input should be greater"):
        ReverseOrderingConfig(**values)


@pytest.mark.parametrize("num_held_out", [8, 9, 2**20])
def test_too_many_held_out_are_refused(num_held_out):
    message = r"num_held_out must lie in 1 … 7: only 8 sequences of 3 tokens exist"
    with pytest.raises(ConfigError, match=message):
        ReverseOrderingConfig(vocab_size=2, length=3, num_held_out=num_held_out)


@pytest.mark.parametrize("most", [False, True], ids=["half", "all_but_30"])
@every_task
def test_training_and_held_out_sequences_are_uniform(kind, most):
    possible = SPACES[kind][1]
    num_held_out = possible - 30 if most else possible // 2
    stream = space(kind, num_held_out).build().stream(7)
    size = 30 if most else 1000
    shown = np.concatenate([stream.train(step, size).tokens for step in range(16)])
    _, counts = np.unique(shown, axis=0, return_counts=True)
    counts = np.pad(counts, (0, possible - num_held_out - len(counts)))
    assert stats.chisquare(counts).pvalue > 1e-3
    if most:
        return
    # Which half is held out depends on the seed alone: over seeds, every sequence is, equally.
    config = space(kind, possible // 20)
    drawn = np.concatenate([config.build().stream(seed).test().tokens for seed in range(100)])
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    counts = np.pad(counts, (0, possible - len(counts)))
    assert stats.chisquare(counts).pvalue > 1e-3


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
    config = found(**sizes, num_held_out=1)
    # Aligned: every word of one row ends where one of the other does.
    ends = [[match.end() for match in re.finditer(r"\S+", row)] for row in (shown, expected)]
    shown, expected = shown.split(), expected.split()
    assert np.ptp(np.subtract(*ends)) == 0
    num_tokens, num_queries, _ = SHAPES[kind](config)
    assert len(shown) == len(expected) == num_tokens + num_queries
    hold = config.vocab_size + 1
    tokens = [hold if word == "HOLD" else int(word) for word in shown[:num_tokens]]
    assert set(shown[num_tokens:]) <= {"?", "EMIT"}
    answers = [int(word) for word in expected if word != "."]
    assert answers == NAIVE[kind](config, tokens) == [int(w) for w in expected[-len(answers) :]]


@pytest.mark.parametrize(
    ("kind", "expected", "num_steps"),
    [
        ("reverse_ordering", (64, 64, 1024), 128),
        ("sorting", (64, 64, 1024), 128),
        ("delayed_addition", (64, 16, 1024), 32),
        ("predecessor_query", (64, 16, 1024), 17),
        ("copying_memory", (8, 10, 1024), 80),
    ],
)
def test_defaults_are_the_papers(kind, expected, num_steps):
    config = TASKS.validate({"kind": kind})
    assert (config.vocab_size, config.length, config.num_held_out) == expected
    assert config.build().num_steps == num_steps
