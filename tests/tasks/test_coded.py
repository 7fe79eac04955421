"""Codes beside the tokens: which, for whom, and that the tokens stay what they are without them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.encodings import Sinusoidal
from pernn.lab.tasks import CodedReversalConfig, ReverseOrderingConfig

KINDS = ("noise", "shared_noise", "keys", "unmirrored_keys", "onset")
LENGTH, SIZE = 4, 6
every_kind = pytest.mark.parametrize("codes", KINDS)


def build(codes):
    sizes = {"vocab_size": 9, "length": LENGTH, "num_held_out": 40, "code_size": SIZE}
    return CodedReversalConfig(codes=codes, **sizes).build()


def stream(codes, seed=1):
    return build(codes).stream(seed)


def codes_of(batch):
    return batch.tokens[:, :, 1:]


@given(st.sampled_from(KINDS), st.integers(0, 2**63 - 1), st.integers(0, 2**40))
def test_tokens_and_targets_are_those_of_the_task_without_codes(codes, seed, step):
    task = build(codes)
    plain_task = ReverseOrderingConfig(vocab_size=9, length=LENGTH, num_held_out=40).build()
    assert (task.num_steps, task.num_queries, task.num_scored) == (2 * LENGTH, 0, LENGTH)
    found, plain = task.stream(seed), plain_task.stream(seed)
    for one, other in ((found.train(step, 3), plain.train(step, 3)), (found.test(), plain.test())):
        assert one.tokens.dtype == np.float32
        assert one.num_queries == 0
        np.testing.assert_array_equal(one.tokens[:, :LENGTH, 0], other.tokens)
        assert (one.tokens[:, LENGTH:, 0] == task.vocab_size).all()
        np.testing.assert_array_equal(one.targets, other.targets)


@every_kind
def test_codes_depend_on_seed_split_and_step(codes):
    found = stream(codes)
    others = (stream(codes, seed=2).train(7, 20), found.train(8, 20), found.test())
    for one, other in itertools.combinations(map(codes_of, (found.train(7, 20), *others)), 2):
        assert not np.array_equal(one[:20], other[:20])
    digests = {codes_of(stream(kind).train(7, 20)).tobytes() for kind in KINDS}
    assert len(digests) == len(KINDS)


def num_distinct(vectors):
    return len({vector.tobytes() for vector in vectors.reshape(-1, SIZE)})


def test_noise_is_another_vector_everywhere():
    found = codes_of(stream("noise").train(0, 20))
    assert num_distinct(found) == 20 * 2 * LENGTH


def test_shared_noise_is_the_same_for_all_sequences():
    for batch in (stream("shared_noise").train(0, 20), stream("shared_noise").test()):
        found = codes_of(batch)
        assert (found == found[:1]).all()
        assert num_distinct(found) == 2 * LENGTH


@pytest.mark.parametrize("codes", ["keys", "unmirrored_keys"])
def test_keys_are_shown_twice(codes):
    batch = stream(codes).train(0, 20)
    found = codes_of(batch)
    assert num_distinct(found) == 20 * LENGTH
    for row, targets, shown in zip(found, batch.targets, batch.tokens[:, :, 0], strict=True):
        for step in range(LENGTH):
            (first,) = (n for n in range(LENGTH) if np.array_equal(row[n], row[LENGTH + step]))
            assert first == (LENGTH - 1 - step if codes == "keys" else step)
            if codes == "keys":
                assert shown[first] == targets[step]


def test_an_onset_is_a_place_in_the_sinusoidal_encoding():
    table = Sinusoidal(SIZE)(1_024 + 2 * LENGTH).numpy()
    onsets = set()
    for row in codes_of(stream("onset").train(0, 300)):
        (onset,) = np.flatnonzero(np.abs(table[:1_024] - row[0]).max(axis=1) < 1e-5)
        np.testing.assert_allclose(row, table[onset : onset + 2 * LENGTH], atol=1e-6)
        onsets.add(int(onset))
    assert len(onsets) > 200
    assert max(onsets) > 900
