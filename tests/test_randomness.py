import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.errors import ConfigError
from pernn.lab.tasks import TASKS
from pernn.randomness import MAX_SEED, RandomStream, Split, integers, uniform

GOLDEN = Path(__file__).parent / "golden" / "streams.json"

names, counters = st.sampled_from(["", "task", "tásk"]), st.integers(0, 2**63)
addresses = st.tuples(st.integers(0, MAX_SEED), names, st.sampled_from(Split), counters, counters)


def words(address, count=8):
    seed, name, split, step, lane = address
    return RandomStream(seed, name, split).words(step, count, lane)


@given(addresses, st.integers(0, 20))
def test_words_depend_on_the_address_alone(address, count):
    np.random.seed(count)  # noqa: NPY002 (global state must not matter)
    np.testing.assert_array_equal(words(address, count), words(address, 20)[:count])


@given(addresses, addresses, st.integers(0, 5))
def test_different_addresses_share_no_word(one, other, field):
    """Be it that one field alone differs."""
    other = tuple(other[i] if field in (i, 5) else one[i] for i in range(5))
    shared = np.intersect1d(words(one), words(other)).size
    assert shared == (8 if one == other else 0)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must lie in"):
        RandomStream(seed, "task", Split.TRAIN)


def test_seeds_and_uniform_numbers_span_what_they_should():
    extremes = np.array([0, 2**11 - 1, 2**11, 2**64 - 1], dtype=np.uint64)
    assert uniform(extremes).tolist() == [0.0, 0.0, 2.0**-53, 1 - 2.0**-53]
    seeds = [RandomStream(seed, "task", Split.WEIGHTS).seed_word() for seed in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    stream = RandomStream(1, "task", Split.TRAIN)
    taken = np.concatenate([stream.words(step, 4096) for step in range(16)])
    assert np.unique(taken).size == taken.size


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.integers(1, 2**31))
def test_integers_stay_below_their_bound_and_follow_exact_arithmetic(values, bound):
    numbers = integers(np.array([*values, 2**64 - 1], dtype=np.uint64), bound)
    assert numbers.min() >= 0
    assert numbers.max() < bound
    exact = np.array([(value >> 11) * bound >> 53 for value in [*values, 2**64 - 1]])
    # Rounding the product may carry over a boundary, by one.
    assert np.all((numbers - exact >= 0) & (numbers - exact <= 1))


def test_the_streams_never_change():
    """If this fails, every trial's data changed: that needs a Numerics entry, not a new file."""
    golden = json.loads(GOLDEN.read_text())
    for case in golden["words"]:
        stream = RandomStream(case["seed"], case["name"], Split[case["split"]])
        found = stream.words(case["step"], len(case["words"]), case["lane"])
        assert [f"{word:016x}" for word in found] == case["words"]
    for case in golden["batches"]:
        stream = TASKS.validate(case["task"]).build().stream(case["seed"])
        assert stream.train(case["step"], len(case["train"])).tokens.tolist() == case["train"]
        assert stream.test().tokens[: len(case["test"])].tolist() == case["test"]
