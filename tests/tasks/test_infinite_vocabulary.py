"""The laws of tests/tasks/test_laws.py for vectors; their distribution; their measures."""

import hashlib
import inspect
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pernn.errors import ConfigError
from pernn.lab.interfaces import BatchStream, Predictions, Task
from pernn.lab.metrics import cosine_similarities
from pernn.lab.tasks import InfiniteVocabularyConfig, Spherical, SphericalTask
from pernn.randomness import RandomStream, Split

configs = st.builds(
    InfiniteVocabularyConfig,
    dimension=st.integers(2, 20),
    length=st.integers(1, 6),
    num_held_out=st.integers(1, 20),
)
seeds, steps = st.integers(0, 2**63 - 1), st.integers(0, 2**40)


def rows(batch):
    return {row.tobytes() for row in batch.tokens}


def words(dimension, count, seed=1):
    number = Spherical(dimension=dimension).num_draws
    return RandomStream(seed, "vectors", Split.TEST).words(0, count * number).reshape(-1, number)


@given(configs, seeds, steps)
def test_shapes_types_range_and_targets(config, seed, step):
    task = config.build()
    stream = task.stream(seed)
    assert isinstance(task, Task)
    assert isinstance(stream, BatchStream)
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


@given(configs, seeds, steps)
def test_train_and_test_are_distinct_and_disjoint(config, seed, step):
    stream = config.build().stream(seed)
    held_out = rows(stream.test())
    assert len(held_out) == config.num_held_out
    assert not rows(stream.train(step, 30)) & held_out


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


@settings(max_examples=25)
@given(configs, seeds, steps)
def test_a_pure_function_of_seed_and_step(config, seed, step):
    expected = config.build().stream(seed).train(step, 6)
    np.random.seed(0)  # noqa: NPY002 (global state must not matter)
    stream = config.build().stream(seed)
    held_out = stream.test().tokens.copy()
    for other in (step + 1, 0, step + 7):
        stream.train(other, 3)
    again = stream.train(step, 6)
    np.testing.assert_array_equal(again.tokens, expected.tokens)
    for size in range(1, 6):
        np.testing.assert_array_equal(stream.train(step, size).tokens, expected.tokens[:size])
    again.tokens[:] = 0
    stream.test().tokens[:] = 0
    np.testing.assert_array_equal(stream.train(step, 6).tokens, expected.tokens)
    np.testing.assert_array_equal(stream.test().tokens, held_out)


def test_every_part_of_the_address_matters():
    config = InfiniteVocabularyConfig(dimension=8, length=3, num_held_out=64)
    base = config.build().stream(1)
    batches = [base.train(0, 64), base.train(1, 64), base.test()]
    batches += [config.build().stream(2).train(0, 64), config.build().stream(2).test()]
    changes = {"dimension": 9, "length": 4, "num_held_out": 65}
    assert set(changes) == set(type(config).model_fields) - {"kind"}
    names = {config.name}
    for name, value in changes.items():
        other = config.override({name: value})
        names.add(other.name)
        batches.append(other.build().stream(1).train(0, 64))
    assert len(names) == 1 + len(changes)
    firsts = [vector[:8].tobytes() for batch in batches for vector in batch.tokens[:, 0]]
    assert len(firsts) == len(set(firsts)) == 8 * 64


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


def test_deviates_come_in_independent_normal_pairs():
    from pernn.lab.tasks.infinite_vocabulary import normals

    drawn = words(2, 200_000)
    first, second = normals(drawn).T
    for values in (first, second, (first + second) / np.sqrt(2)):
        assert stats.kstest(values, "norm").pvalue > 1e-3
    angles = np.arctan2(second, first) / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > 1e-3
    # The same numbers by the library's functions, whose last bits are their own affair.
    radii = np.sqrt(-2 * np.log(((drawn[:, 0] >> np.uint64(32)) + 0.5) * 2.0**-32))
    np.testing.assert_allclose(np.hypot(first, second), radii, rtol=1e-9)


@pytest.mark.parametrize("word", [0, 2**64 - 1, 2**63, 2**32 - 1, 2**32, 2**31])
def test_extreme_words_make_vectors_too(word):
    vectors = Spherical(dimension=3).draw(np.full((1, 2), word, dtype=np.uint64))
    assert np.isfinite(vectors).all()
    assert vectors.shape == (1, 1, 3)
    assert abs(np.linalg.norm(vectors) - 1) < 1e-6


def test_the_very_bits_are_the_same_everywhere():
    """Sums, products, quotients and roots only; if this fails, data of old trials change too."""
    stream = InfiniteVocabularyConfig(dimension=9, length=4, num_held_out=8).build().stream(111)
    data = [stream.train(0, 8).tokens, stream.train(7, 8).tokens, stream.test().tokens]
    assert (
        hashlib.sha256(b"".join(map(np.ndarray.tobytes, data))).hexdigest()[:16]
        == "6975e8d6dc6a66b5"
    )


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


def test_cosines_ignore_lengths():
    one = np.array([[[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]]], dtype=np.float32)
    other = np.array([[[0.5, 0.0], [1.0, 0.0], [1.0, 0.0]]], dtype=np.float32)
    np.testing.assert_allclose(cosine_similarities(one, other), [[1, 2**-0.5, 0]])


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


@pytest.mark.parametrize("values", [{"dimension": 1}, {"length": 0}, {"num_held_out": 0}])
def test_too_small_a_task_is_refused(values):
    with pytest.raises(ConfigError, match=f"{next(iter(values))}: expected (at least|more than)"):
        InfiniteVocabularyConfig(**values)


def test_there_is_no_vocabulary_to_set():
    with pytest.raises(ConfigError, match="vocab_size: unknown key"):
        InfiniteVocabularyConfig(vocab_size=5)


def test_defaults():
    config = InfiniteVocabularyConfig()
    assert (config.length, config.num_held_out, config.dimension) == (64, 1024, 64)
    assert config.build().num_steps == 128
