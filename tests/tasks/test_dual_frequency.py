"""A vocabulary of two frequencies: shares, presets, and the test set cell by cell."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from pernn.lab.interfaces import UNSCORED, Predictions
from pernn.lab.runs import RunSpec
from pernn.lab.tasks import DualFrequencyConfig


def spec(preset="as-run", **options):
    task = {"kind": "dual_frequency", **options}
    return RunSpec.load({"task": task, "preset": preset})


def test_the_preset_fills_in_what_is_left_open_and_nothing_else():
    for preset, share in (("as-run", 0.125), ("as-written", 0.25)):
        for given, expected in ((None, share), (0.4, 0.4)):
            task = spec(preset, rare_share=given).build_task()
            assert task.name == f"dual_frequency K=64 L=64 rare_share={expected} per_cell=16"
            assert task.source.rare_share == expected
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


def test_accuracies_by_condition_position_and_quarter():
    length, per_cell = 10, 2
    config = DualFrequencyConfig(vocab_size=8, length=length, num_per_cell=per_cell)
    stream = config.build().stream(1)
    batch = stream.test()
    said = np.random.Generator(np.random.Philox(3)).integers(4, size=batch.targets.shape)
    predictions = np.where(said > 0, batch.targets, 0)
    found = stream.measure(Predictions(predictions, np.zeros(predictions.shape)))
    rows = []
    for tokens, targets, answer in zip(batch.tokens, batch.targets, predictions, strict=True):
        (step,) = np.flatnonzero(targets != UNSCORED)
        position = length - step
        target, disturbants = (
            "Rare" if token >= 4 else "Frequent"
            for token in (tokens[position - 1], np.delete(tokens, position - 1)[0])
        )
        quarter = next(q for q in range(1, 5) if position - 1 < q * length / 4)
        right = float(answer[step] == targets[step])
        rows.append(
            (target, disturbants, f"{target} among {disturbants}", quarter, position, right)
        )
    cells = ["target", "disturbants", "condition"]
    frame = pd.DataFrame(rows, columns=[*cells, "quarter", "position", "token_accuracy"])
    assert list(found.tables) == ["by_condition", "by_quarter", "by_position"]
    for name, table in found.tables.items():
        keys = [*cells, *({name.removeprefix("by_")} - {"condition"})]
        groups = frame.groupby(keys).token_accuracy
        expected = pd.concat([groups.mean(), groups.size().rename("num_sequences")], axis=1)
        pd.testing.assert_frame_equal(
            pd.DataFrame(table).set_index(keys), expected, check_like=True, check_dtype=False
        )
    everything = (predictions == batch.targets)[batch.targets != UNSCORED].mean()
    assert found.metrics == {"token_accuracy": pytest.approx(everything)}
