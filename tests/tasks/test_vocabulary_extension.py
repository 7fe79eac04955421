"""Known and new ids: what is trained on, what is tested."""

import numpy as np
import pytest

from pernn.errors import ConfigError
from pernn.lab.interfaces import Predictions
from pernn.lab.tasks import VocabularyExtensionConfig

CONFIG = VocabularyExtensionConfig(vocab_size=12, num_known=8, length=5, num_held_out=100)


def answers(predictions):
    return Predictions(predictions, np.zeros(predictions.shape))


def test_one_half_of_the_test_has_new_ids_only():
    stream = CONFIG.build().stream(111)
    tokens = stream.test().tokens
    assert tokens.shape == (200, 5)
    assert tokens[:100].min() == 8
    assert tokens[:100].max() == tokens[100:].max() == 11
    assert tokens[100:].min() == 0
    assert len(np.unique(tokens, axis=0)) == 200


def test_training_shows_all_ids_and_nothing_of_the_test():
    stream = CONFIG.build().stream(111)
    held_out = set(map(tuple, stream.test().tokens.tolist()))
    batches = [stream.train(step, 200).tokens for step in range(50)]
    assert {int(token) for batch in batches for token in np.unique(batch)} == set(range(12))
    assert not held_out & {tuple(row) for batch in batches for row in batch.tolist()}


def test_targets_are_the_inputs_reversed_in_both_parts():
    stream = CONFIG.build().stream(5)
    for batch in (stream.train(3, 20), stream.test()):
        assert batch.targets.tolist() == [row[::-1] for row in batch.tokens.tolist()]
        assert batch.num_queries == 5


def test_a_pure_function_of_seed_and_step():
    expected = CONFIG.build().stream(5).train(7, 9).tokens
    stream = CONFIG.build().stream(5)
    stream.test(), stream.train(0, 3)
    np.testing.assert_array_equal(stream.train(7, 9).tokens, expected)
    others = [CONFIG.build().stream(6), CONFIG.override({"num_known": 7}).build().stream(5)]
    assert not any(np.array_equal(other.train(7, 9).tokens, expected) for other in others)


def test_metrics_are_those_of_new_ids():
    stream = CONFIG.build().stream(111)
    batch = stream.test()
    predictions = batch.targets.copy()
    predictions[100:, 0] += 1
    found = stream.measure(answers(predictions))
    assert found.metrics["token_accuracy"] == 1
    assert found.tables["by_ids"]["ids"] == ["new", "mixed"]
    assert found.tables["by_ids"]["token_accuracy"] == [1, 0.8]
    predictions[:100, 1:3] += 1
    found = stream.measure(answers(predictions))
    assert found.metrics["token_accuracy"] == pytest.approx(0.6)
    assert found.metrics["sequence_accuracy"] == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_known": 12}, r"num_known must lie in 1 … 11 of 12 ids, got 12"),
        ({"num_held_out": 1025}, r"only 1,024 sequences of 5 new tokens exist; got 1,025"),
        ({"num_known": 1, "vocab_size": 3, "num_held_out": 32}, None),
        ({"num_known": 1, "vocab_size": 2, "length": 3, "num_held_out": 2}, "1 new tokens|only 1"),
    ],
)
def test_impossible_sizes_are_refused(changes, said):
    if said is None:
        assert CONFIG.override(changes).build().stream(1).test().tokens.shape == (64, 5)
        return
    with pytest.raises(ConfigError, match=said):
        CONFIG.override(changes)
