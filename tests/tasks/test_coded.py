"""Codes beside tokens, which stay what they are; longer inputs in the test, none of them known."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.encodings import Sinusoidal
from pernn.lab.interfaces import UNSCORED
from pernn.lab.tasks import CodedReversalConfig, LongerInputsConfig, ReverseOrderingConfig

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


def test_noise_is_another_vector_everywhere_unless_sequences_share_it():
    found = codes_of(stream("noise").train(0, 20))
    assert num_distinct(found) == 20 * 2 * LENGTH
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


def onsets_of(codes):
    """Yield where in the sinusoidal encoding each sequence begins."""
    table = Sinusoidal(SIZE)(1_024 + codes.shape[1]).numpy()
    for row in codes:
        (onset,) = np.flatnonzero(np.abs(table[:1_024] - row[0]).max(axis=1) < 1e-5)
        np.testing.assert_allclose(row, table[onset : onset + len(row)], atol=1e-6)
        yield int(onset)


LONGER = {"vocab_size": 5, "length": 4, "min_length": 2, "tested_lengths": (6, 7)}


def longer(**changes):
    return LongerInputsConfig(**{**LONGER, "num_held_out": 20, "code_size": SIZE, **changes})


def inputs_of(batch, longest):
    return [[one for one in row if one < 5] for row in batch.tokens[:, :longest].tolist()]


def test_training_has_its_lengths_tests_have_longer_ones_and_answers_come_right_after():
    task = longer().build()
    stream = task.stream(1)
    assert (task.num_steps, task.num_scored, task.num_queries) == (14, 12, 0)
    shown, asked = stream.train(3, 500), stream.test()
    assert shown.tokens.shape == (500, 8)
    assert shown.targets.shape == (500, 6)
    assert asked.tokens.shape == (5 * 20, task.num_steps)
    assert asked.targets.shape == (5 * 20, task.num_scored)
    assert {*map(len, inputs_of(shown, 4))} == {2, 3, 4}
    assert [*map(len, inputs_of(asked, 7))] == [n for n in (2, 3, 4, 6, 7) for _ in range(20)]
    stream = longer().build().stream(1)
    for batch, longest in ((stream.train(0, 50), 4), (stream.test(), 7)):
        for row, answers in zip(inputs_of(batch, longest), batch.targets.tolist(), strict=True):
            first = len(row) - 2
            assert answers[first : first + len(row)] == row[::-1]
            rest = answers[:first] + answers[first + len(row) :]
            assert {*rest} <= {UNSCORED}


def test_training_shows_no_test_sequence_and_no_start_of_one():
    stream = longer(vocab_size=3, num_held_out=4).build().stream(1)
    tested = stream.held_out
    known = {tuple(one for one in row[:4] if one < 3) for row in tested.tolist()}
    shown = {tuple(one for one in row if one < 3) for row in stream._inputs(0, 400).tolist()}
    assert len({*map(tuple, tested.tolist())}) == len(tested) == 5 * 4
    assert not shown & known
    assert len(shown) > 20


def test_an_onset_is_a_place_in_the_sinusoidal_encoding_beside_the_same_tokens():
    plain, coded = longer().build().stream(1), longer(codes="onset").build().stream(1)
    for one, other in ((plain.train(2, 30), coded.train(2, 30)), (plain.test(), coded.test())):
        np.testing.assert_array_equal(other.tokens[:, :, 0], one.tokens)
        np.testing.assert_array_equal(other.targets, one.targets)
        assert {*onsets_of(codes_of(other))} <= {*range(1_024)}
    onsets = {*onsets_of(codes_of(stream("onset").train(0, 300)))}
    assert len(onsets) > 200
    assert max(onsets) > 900
