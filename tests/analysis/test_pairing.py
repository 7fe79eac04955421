"""Pairs: what is shared, what differs, in which class, and what they depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.lab.pairing import dual_frequency_pairs
from pernn.lab.tasks import (
    CopyingMemoryConfig,
    DelayedAdditionConfig,
    DualFrequencyConfig,
    ReverseOrderingConfig,
)

TASK = DualFrequencyConfig(vocab_size=64, length=10).build()


@pytest.mark.parametrize("source", [1, 4, 10])
def test_shared_up_to_the_target_and_of_the_classes_of_their_condition(source):
    pairs = dual_frequency_pairs(TASK, 111, num_per_condition=40, source=source)
    assert (len(pairs), pairs.num_queries, pairs.source) == (160, 10, source)
    assert pairs.first.shape == pairs.second.shape == (160, 10)
    assert np.array_equal(pairs.first[:, :source], pairs.second[:, :source])
    # 31/32 of the later ids differ.
    assert (pairs.first[:, source:] == pairs.second[:, source:]).sum() < 0.06 * 160 * 10
    for number, (target, disturbants) in enumerate(pairs.conditions):
        rows = pairs.condition == number
        assert rows.sum() == 40
        for side in (pairs.first, pairs.second):
            is_rare = side[rows] >= 32
            assert (is_rare[:, source - 1] == (target == "Rare")).all()
            others = np.delete(is_rare, source - 1, axis=1)
            assert (others == (disturbants == "Rare")).all()
    assert pairs.conditions == tuple(
        (a, b) for a in ("Frequent", "Rare") for b in ("Frequent", "Rare")
    )


def test_every_id_of_a_class_is_equally_likely_and_alike_ids_have_one_condition():
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=4000, source=2)
    rows = pairs.condition == 2  # Rare among Frequent
    for ids, low in ((pairs.first[rows, 1], 32), (pairs.second[rows, 5], 0)):
        counts = np.bincount(ids - low, minlength=32)
        assert counts.size == 32
        assert ((counts - 125) ** 2 / 125).sum() < 70  # χ² of 31: beyond with p < 1e-4
    pairs = dual_frequency_pairs(
        ReverseOrderingConfig(vocab_size=7).build(), 1, num_per_condition=9
    )
    assert pairs.conditions == (("all", "all"),)
    assert len(pairs) == 9
    assert set(pairs.first[:, 1:].flatten()) == set(range(7))


@given(few=st.integers(1, 5), more=st.integers(0, 9), source=st.integers(1, 10))
def test_fewer_pairs_are_the_first_of_more(few, more, source):
    small = dual_frequency_pairs(TASK, 5, num_per_condition=few, source=source)
    large = dual_frequency_pairs(TASK, 5, num_per_condition=few + more, source=source)
    for condition in range(4):
        for name in ("first", "second"):
            one, other = (
                getattr(pairs, name)[pairs.condition == condition] for pairs in (small, large)
            )
            assert np.array_equal(one, other[:few])


def test_a_pure_function_of_seed_name_and_source():
    def rows(**changed):
        values = {"seed": 1, "source": 3, "vocab_size": 64, **changed}
        task = DualFrequencyConfig(vocab_size=values.pop("vocab_size"), length=10).build()
        return dual_frequency_pairs(task, num_per_condition=4, **values).second.tolist()

    assert rows() == rows()
    changes = ({}, {"seed": 2}, {"source": 4}, {"vocab_size": 32})
    assert len({str(rows(**change)) for change in changes}) == 4
    assert rows()[0] == [8, 0, 6, 26, 16, 23, 10, 2, 5, 23]  # on any machine


@pytest.mark.parametrize(
    ("task", "source", "target"),
    [
        (ReverseOrderingConfig(length=8), 1, 16),
        (ReverseOrderingConfig(length=8), 8, 9),
        (DualFrequencyConfig(length=64), 23, 106),
        (DelayedAdditionConfig(length=4), 1, 8),
        (DelayedAdditionConfig(length=4), 4, 5),
        (CopyingMemoryConfig(length=3, hold_time=2, num_held_out=8), 2, 7),
    ],
)
def test_the_target_is_the_step_that_answers(task, source, target):
    task = task.build()
    pairs = dual_frequency_pairs(task, 1, num_per_condition=30, source=source)
    assert pairs.target == target
    answers = task.batch(pairs.first[:, : task.longest]).targets
    step = target - (task.num_steps - task.num_scored) - 1
    changed = pairs.first[:, : task.longest].copy()
    changed[:, source - 1] = (changed[:, source - 1] + 1) % task.vocab_size
    assert (task.batch(changed).targets[:, step] != answers[:, step]).all()
    assert not (np.delete(task.batch(changed).targets != answers, step, axis=1)).any()
