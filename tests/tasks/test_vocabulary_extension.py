"""Known and new ids: what is trained on, what is tested."""

import numpy as np
import pytest

from pernn.lab.interfaces import Predictions
from pernn.lab.tasks import VocabularyExtensionConfig

CONFIG = VocabularyExtensionConfig(vocab_size=12, num_known=8, length=5, num_held_out=100)


def test_one_half_of_the_test_has_new_ids_only():
    stream = CONFIG.build().stream(111)
    tokens = stream.test().tokens
    assert tokens.shape == (200, 5)
    assert tokens[:100].min() == 8
    assert tokens[:100].max() == tokens[100:].max() == 11
    assert tokens[100:].min() == 0
    assert len(np.unique(tokens, axis=0)) == 200


def test_training_shows_all_ids():
    tokens = CONFIG.build().stream(111).train(0, 200).tokens
    assert np.unique(tokens).tolist() == list(range(12))


def test_targets_are_the_inputs_reversed_in_both_parts():
    stream = CONFIG.build().stream(5)
    for batch in (stream.train(3, 20), stream.test()):
        assert batch.targets.tolist() == [row[::-1] for row in batch.tokens.tolist()]
        assert batch.num_queries == 5


def test_metrics_are_those_of_new_ids():
    stream = CONFIG.build().stream(111)
    batch = stream.test()
    predictions = batch.targets.copy()
    predictions[100:, 0] += 1
    found = stream.measure(Predictions(predictions, np.zeros((200, 5))))
    assert found.metrics["token_accuracy"] == 1
    assert found.tables["by_ids"]["ids"] == ["new", "mixed"]
    assert found.tables["by_ids"]["token_accuracy"] == [1, 0.8]
    predictions[:100, 1:3] += 1
    found = stream.measure(Predictions(predictions, np.zeros((200, 5))))
    assert found.metrics["token_accuracy"] == pytest.approx(0.6)
    assert found.metrics["sequence_accuracy"] == 0
