"""Linear probes: what is there is read, what is not gives chance, and classes unseen are wrong."""

import sys

import numpy as np
import pytest

from pernn.analysis import read_linearly
from pernn.errors import MachineError

DRAWN = np.random.default_rng(5)
TOKENS, OTHERS = DRAWN.integers(5, size=(2, 2_000))
SLOTS = np.concatenate([np.eye(5)[TOKENS], np.eye(5)[OTHERS]], axis=1)


def test_slots_are_read_in_any_basis_without_error():
    mixed = SLOTS @ DRAWN.normal(size=(10, 12))
    for states in (SLOTS, mixed, mixed + 3, np.eye(5)[TOKENS]):
        assert read_linearly(states, TOKENS).all()
    assert read_linearly(mixed, OTHERS).all()


def test_permuted_tokens_give_chance():
    share = read_linearly(SLOTS, DRAWN.permutation(TOKENS)).mean()
    assert abs(share - 1 / 5) < 4 * (0.2 * 0.8 / 2_000) ** 0.5


def test_what_is_not_linear_is_not_read():
    signs = DRAWN.choice([-1.0, 1.0], size=(2_000, 2))
    share = read_linearly(signs, (signs.prod(axis=1) > 0).astype(np.int64)).mean()
    assert share < 0.6


def test_a_class_of_one_half_only_is_wrong():
    labels = np.where(np.arange(2_000) == 3, 7, TOKENS)
    read = read_linearly(np.eye(8)[labels], labels)
    assert not read[3]
    assert read.sum() == 1_999


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.discriminant_analysis", None)
    with pytest.raises(MachineError, match="probes"):
        read_linearly(SLOTS, TOKENS)
