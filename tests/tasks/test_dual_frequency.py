"""A vocabulary of two frequencies: shares, presets, and the test set cell by cell."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from pernn.lab.interfaces import UNSCORED, Predictions
from pernn.lab.runs import RunSpec
from pernn.lab.tasks import DualFrequencyConfig

SHARES = {"as-run": 1 / 8, "as-written": 1 / 4}


def spec(preset="as-run", **options):
    task = {"kind": "dual_frequency", **options}
    return RunSpec.load({"task": task, "preset": preset})


def shares_p_value(tokens, half, share):
    num_rare = int((tokens >= half).sum())
    expected = [tokens.size * (1 - share), tokens.size * share]
    return stats.chisquare([tokens.size - num_rare, num_rare], expected).pvalue


@pytest.mark.parametrize(("preset", "share"), SHARES.items())
@pytest.mark.parametrize("vocab_size", [64, 1024, 2048])
def test_both_presets_have_their_shares(preset, share, vocab_size):
    stream = spec(preset, vocab_size=vocab_size).build_task().stream(111)
    tokens, half = stream.train(0, 5_000).tokens, vocab_size // 2
    assert shares_p_value(tokens, half, share) > 1e-3
    # The test can tell the presets apart.
    (other,) = set(SHARES.values()) - {share}
    assert shares_p_value(tokens, half, other) < 1e-9
    for ids in (tokens[tokens < half], tokens[tokens >= half] - half):
        assert stats.chisquare(np.bincount(ids, minlength=half)).pvalue > 1e-3


def test_the_preset_fills_in_what_is_left_open_and_nothing_else():
    names = {spec(preset).build_task().name for preset in SHARES}
    assert names == {
        f"dual_frequency K=64 L=64 rare_share={share} per_cell=16" for share in (0.125, 0.25)
    }
    assert {spec(preset, rare_share=0.4).build_task().name for preset in SHARES} == {
        "dual_frequency K=64 L=64 rare_share=0.4 per_cell=16"
    }
    # Without a preset, as when a spec is checked or a task shown, it is that of as-run.
    assert DualFrequencyConfig().build().name == spec().build_task().name
    assert spec().dump()["task"]["rare_share"] is None


def test_the_papers_test_set_cell_by_cell():
    task = spec(vocab_size=64).build_task()
    batch = task.stream(111).test()
    assert batch.tokens.shape == (4096, 64)
    assert len(np.unique(batch.tokens, axis=0)) == 4096
    cells = Counter()
    for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
        (step,) = np.flatnonzero(targets != UNSCORED)
        place = 63 - step
        assert targets[step] == tokens[place]
        (disturbants,) = set(np.delete(tokens, place) >= 32)
        cells[bool(tokens[place] >= 32), bool(disturbants), int(place)] += 1
    assert len(cells) == 2 * 2 * 64
    assert set(cells.values()) == {16}
    # Mixed and pure conditions differ in the target token alone.
    frequent, rare = batch.tokens.reshape(2, 2, 64, 16, 64)
    differs = frequent != rare
    assert (differs.sum(axis=-1) == 1).all()
    assert (differs.argmax(axis=-1) == np.arange(64)[None, :, None]).all()
    # Frequent and rare disturbants stand around the same target token, each position's its own.
    asked = batch.targets[batch.targets != UNSCORED].reshape(2, 2, 64 * 16)
    np.testing.assert_array_equal(asked[:, 0], asked[:, 1])
    assert len(np.unique(asked[0, 0])) == 32


def test_targets_and_disturbants_are_uniform_in_their_halves():
    batch = spec(vocab_size=16, num_per_cell=64).build_task().stream(444).test()
    asked = batch.targets[batch.targets != UNSCORED].reshape(2, 2, -1)
    for target in range(2):
        for disturbants in range(2):
            ids = asked[target, disturbants] - 8 * target
            assert stats.chisquare(np.bincount(ids, minlength=8)).pvalue > 1e-3
    # One member of each pair: its partner repeats it.
    pure = batch.tokens.reshape(2, 2, -1)[0, 0]
    assert stats.chisquare(np.bincount(pure, minlength=8)).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.125, 0.5, 0.9])
@pytest.mark.parametrize(
    ("vocab_size", "length", "num_per_cell"), [(4, 3, 2), (4, 4, 4), (4, 8, 32), (6, 3, 9)]
)
def test_disjoint_even_where_all_pure_sequences_are_held_out(
    vocab_size, length, num_per_cell, share
):
    config = DualFrequencyConfig(
        vocab_size=vocab_size, length=length, num_per_cell=num_per_cell, rare_share=share
    )
    stream = config.build().stream(5)
    held_out = set(map(tuple, stream.test().tokens.tolist()))
    assert len(held_out) == 4 * length * num_per_cell
    for step in range(20):
        assert not held_out & set(map(tuple, stream.train(step, 100).tokens.tolist()))


def test_accuracies_by_condition_position_and_quarter():
    length, per_cell = 10, 2
    config = DualFrequencyConfig(vocab_size=8, length=length, num_per_cell=per_cell)
    stream = config.build().stream(1)
    batch = stream.test()
    said = np.random.Generator(np.random.Philox(3)).integers(4, size=batch.targets.shape)
    predictions = np.where(said > 0, batch.targets, 0)
    found = stream.measure(Predictions(predictions, np.zeros(predictions.shape)))
    naive = {}
    for tokens, targets, answer in zip(batch.tokens, batch.targets, predictions, strict=True):
        (step,) = np.flatnonzero(targets != UNSCORED)
        position = length - step
        target, disturbants = (
            "Rare" if token >= 4 else "Frequent"
            for token in (tokens[position - 1], np.delete(tokens, position - 1)[0])
        )
        quarter = next(q for q in range(1, 5) if position - 1 < q * length / 4)
        right = float(answer[step] == targets[step])
        for key in ((), (position,), ("q", quarter)):
            naive.setdefault((target, disturbants, *key), []).append(right)
    tables = found.tables
    assert list(tables) == ["by_condition", "by_quarter", "by_position"]
    for name, key in (
        ("by_condition", lambda row: ()),
        ("by_quarter", lambda row: ("q", row["quarter"])),
        ("by_position", lambda row: (row["position"],)),
    ):
        columns = tables[name]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        assert len(rows) == len({tuple(row.values())[:4] for row in rows})
        for row in rows:
            assert row["condition"] == f"{row['target']} among {row['disturbants']}"
            expected = naive.pop((row["target"], row["disturbants"], *key(row)))
            assert row["num_sequences"] == len(expected)
            assert row["token_accuracy"] == pytest.approx(np.mean(expected))
    assert not naive
    everything = (predictions == batch.targets)[batch.targets != UNSCORED].mean()
    assert found.metrics == {"token_accuracy": pytest.approx(everything)}
