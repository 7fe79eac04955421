"""Vectors: shapes and targets, their distribution, their measures."""

import inspect
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pernn.lab.interfaces import Predictions
from pernn.lab.tasks import InfiniteVocabularyConfig, Spherical, SphericalTask
from pernn.randomness import RandomStream, Split

configs = st.builds(
    InfiniteVocabularyConfig,
    dimension=st.integers(2, 20),
    length=st.integers(1, 6),
    num_held_out=st.integers(1, 20),
)
seeds, steps = st.integers(0, 2**63 - 1), st.integers(0, 2**40)


def words(dimension, count, seed=1):
    number = Spherical(dimension=dimension).num_draws
    return RandomStream(seed, "vectors", Split.TEST).words(0, count * number).reshape(-1, number)


@given(configs, seeds, steps)
def test_shapes_types_range_and_targets(config, seed, step):
    task = config.build()
    stream = task.stream(seed)
    assert task.vocab_size == config.dimension
    assert (task.num_steps, task.num_queries) == (2 * config.length, config.length)
    assert (task.num_scored, task.extra_rows) == (config.length, ())
    for batch, size in ((stream.train(step, 3), 3), (stream.test(), config.num_held_out)):
        assert batch.tokens.shape == batch.targets.shape == (size, config.length, config.dimension)
        assert batch.tokens.dtype == batch.targets.dtype == np.float32
        assert batch.num_queries == config.length
        np.testing.assert_allclose((batch.tokens.astype(float) ** 2).sum(axis=2), 1, atol=1e-6)
        for shown, expected in zip(batch.tokens, batch.targets, strict=True):
            for place in range(config.length):
                np.testing.assert_array_equal(expected[place], shown[config.length - 1 - place])


def test_held_out_rows_are_recognised_and_drawn_again(monkeypatch):
    task = InfiniteVocabularyConfig(dimension=4, length=3, num_held_out=10).build()
    stream = task.stream(1)
    held_out = stream.held_out
    assert stream.is_held_out(held_out).all()
    changed = held_out.copy()
    changed[:, 1, 2] = np.nextafter(changed[:, 1, 2], np.float32(2))
    assert not stream.is_held_out(changed).any()
    # No two draws ever coincide, so a coincidence is made.
    draw, lanes = SphericalTask.draw, itertools.count()

    def again(task, words):
        drawn = draw(task, words)
        if (lane := next(lanes)) < 2:
            drawn[0] = held_out[lane]
        return drawn

    expected = stream.train(5, 4).tokens
    monkeypatch.setattr(SphericalTask, "draw", again)
    found = task.stream(1).train(5, 4).tokens
    assert next(lanes) == 3
    assert not stream.is_held_out(found).any()
    np.testing.assert_array_equal(found[1:], expected[1:])
    assert not np.array_equal(found[0], expected[0])
    stream.test().tokens[:] = 0  # a copy
    assert stream.test().tokens.all()


@pytest.mark.parametrize("dimension", [2, 3, 8, 65])
def test_vectors_are_uniform_on_the_hypersphere(dimension):
    vectors = Spherical(dimension=dimension).draw(words(dimension, 20_000))[:, 0].astype(float)
    # A component x of a uniform vector: (1 + x)/2 is Beta((d − 1)/2, (d − 1)/2).
    marginal = stats.beta((dimension - 1) / 2, (dimension - 1) / 2)
    generator = np.random.default_rng(0)
    directions = [*np.eye(dimension)[[0, 1, -1]], *generator.normal(size=(3, dimension))]
    for direction in directions:
        projected = vectors @ (direction / np.linalg.norm(direction))
        assert stats.kstest((1 + projected) / 2, marginal.cdf).pvalue > 1e-3
    # Neighbouring vectors know nothing of each other.
    cosines = (vectors[1:] * vectors[:-1]).sum(axis=1)
    assert stats.kstest((1 + cosines[::2]) / 2, marginal.cdf).pvalue > 1e-3


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**63, 2**32 - 1, 2**32, 2**31])
def test_extreme_words_make_vectors_too(word):
    vectors = Spherical(dimension=3).draw(np.full((1, 2), word, dtype=np.uint64))
    assert np.isfinite(vectors).all()
    assert vectors.shape == (1, 1, 3)
    assert abs(np.linalg.norm(vectors) - 1) < 1e-6


def test_measures_of_known_answers():
    config = InfiniteVocabularyConfig(dimension=5, length=4, num_held_out=50)
    stream = config.build().stream(1)
    targets = stream.test().targets
    losses = np.zeros(targets.shape[:2])
    # Half the answers are right, at any length; a quarter is the opposite; a quarter is nothing.
    factors = np.array([2.0, 0.5, -3.0, 0.0], dtype=np.float32)[:, None]
    found = stream.measure(Predictions(targets * factors, losses))
    assert found.metrics["cosine_similarity"] == pytest.approx((1 + 1 - 1 + 0) / 4)
    assert found.metrics["cosine_q75"] == pytest.approx(1)
    table = found.tables["cosine"]
    assert table["q0"] == [pytest.approx(-1)]
    assert table["q100"] == [pytest.approx(1)]
    quantiles = [table[f"q{percent}"][0] for percent in range(0, 101, 5)]
    assert quantiles == sorted(quantiles)
    assert table["q25"] == [found.metrics["cosine_q25"]]
    assert table["q50"] == [found.metrics["cosine_median"]]


def test_the_docstrings_picture_is_true():
    text = inspect.getdoc(InfiniteVocabularyConfig)
    length, shown, expected = re.search(
        r"Picture \(L = (\d)\):\n +input +(.*)\n +target +(.*)\n", text
    ).groups()
    ends = [[match.end() for match in re.finditer(r"\S+", row)] for row in (shown, expected)]
    assert np.ptp(np.subtract(*ends)) == 0
    length, shown, expected = int(length), shown.split(), expected.split()
    assert shown == [*(f"v{n}" for n in range(1, length + 1)), *["0"] * length]
    assert expected == [*["."] * length, *(f"v{n}" for n in range(length, 0, -1))]
