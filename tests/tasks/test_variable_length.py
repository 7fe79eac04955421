"""Inputs of several lengths: how long they are, and how many of each length are held out."""

import numpy as np
import pytest
from scipy import stats

from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec
from pernn.lab.tasks import VariableLengthConfig


def test_lengths_are_uniform_and_say_nothing_of_the_tokens():
    batch = VariableLengthConfig(vocab_size=8, num_held_out=4).build().stream(111).train(5, 20_000)
    assert batch.tokens.shape == (20_000, 128)
    assert batch.targets.shape == (20_000, 128 - 32)
    inputs = batch.tokens[:, :64]
    lengths = (inputs < 8).sum(axis=1)
    counts = np.bincount(lengths)[32:]
    assert len(counts) == 33
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.chisquare(np.bincount(inputs[inputs < 8])).pvalue > 1e-3
    table = np.zeros((33, 8))
    np.add.at(table, (lengths - 32, inputs[:, 0]), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_as_many_are_held_out_of_each_length():
    config = VariableLengthConfig(vocab_size=2, min_length=6, length=9, num_held_out=50)
    tokens = config.build().stream(1).test().tokens[:, :9]
    lengths, counts = np.unique((tokens < 2).sum(axis=1), return_counts=True)
    assert dict(zip(lengths.tolist(), counts.tolist(), strict=True)) == {
        6: 50, 7: 50, 8: 50, 9: 50
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min_length": 65}, "min_length must lie in 1 … 64, the longest length; got 65"),
        ({"min_length": 0}, "min_length: expected at least 1"),
        (
            {"vocab_size": 2, "min_length": 8},
            "num_held_out must lie in 1 … 255: only 256 sequences",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        VariableLengthConfig(**options)


def test_codes_cannot_be_masked_by_phase():
    values = {
        "task": {"kind": "variable_length"},
        "encoding": {"kind": "sinusoidal", "masked": "output"},
    }
    said = "an output phase of queries that begins at the same step in every sequence, and task var"
    with pytest.raises(ConfigError, match=said):
        RunSpec.load(values)
