"""Similarity and noise of gradients in every checkpoint: which rows, which numbers, same bits."""

import numpy as np
import pytest
import torch

from pernn.analysis import gradient_noise, lead
from pernn.lab.runs import execute, load_model
from pernn.lab.runs.analysis import nearest_checkpoints
from pernn.lab.store import RunDirectory
from pernn.randomness import RandomStream, Split
from runs import bits
from runs.test_anatomy import LEARNING
from tiny import tiny

TRAINING = tiny("dual_frequency", vocab_size=4, length=3, num_per_cell=2, training=LEARNING)
LEVELS = (0.3, 0.4, 0.99)
ANALYSIS = {"kind": "descent", "levels": LEVELS, "num_per_condition": 3, "num_batches": 5}
SPEC = TRAINING.override({"analysis": ANALYSIS})


def test_cut_anywhere_it_ends_in_the_same_bits(tmp_path):
    for name in ("a", "b"):
        execute(TRAINING, tmp_path / name, device="cpu")
    assert SPEC.num_updates == 60 + 7
    execute(SPEC, tmp_path / "a", device="cpu", threads=2)
    for cut in (61, 65):
        stop = execute(SPEC, tmp_path / "b", device="cpu", on_update=lambda n, cut=cut: n != cut)
        assert stop.state == "stopped", cut
    execute(SPEC, tmp_path / "b", device="cpu")
    assert bits.contents(SPEC, tmp_path / "a") == bits.contents(SPEC, tmp_path / "b")


def test_every_checkpoint_has_its_rows_and_levels_stand_beside(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    result = execute(SPEC, tmp_path, device="cpu").result
    every, noise, found = (
        result["tables"][name] for name in ("gradient_stability", "gradient_noise", "at_levels")
    )
    assert noise["update"] == [*range(0, 61, 10)]
    assert every["update"] == [update for update in noise["update"] for _ in range(4)]
    lines = RunDirectory(tmp_path, TRAINING.fingerprint()).read_metrics()
    nearest = nearest_checkpoints(LEVELS, TRAINING.training, lines)
    rows = list(zip(found["update"], found["level"], found["disturbants"], strict=True))
    assert sorted(rows) == sorted(
        (update, level, word)
        for update, levels in nearest.items()
        for level in levels
        for word in ("Frequent", "Rare")
    )
    rare = {}
    for row, (update, _, word) in enumerate(rows):
        similarities = [
            value
            for value, at, beside in zip(
                every["similarity"], every["update"], every["disturbants"], strict=True
            )
            if (at, beside) == (update, word)
        ]
        assert found["similarity"][row] == pytest.approx(np.mean(similarities))
        place = noise["update"].index(update)
        assert found["loss"][row] == noise["loss"][place]
        assert found["noise_scale"][row] == noise["noise_scale"][place]
    for update in noise["update"][1:]:
        rare[update] = np.mean(
            [
                value
                for value, at, beside in zip(
                    every["similarity"], every["update"], every["disturbants"], strict=True
                )
                if (at, beside) == (update, "Rare")
            ]
        )
    expected = lead(np.array([*rare.values()]), np.array(noise["loss"][1:]))
    assert result["metrics"]["lead"] == pytest.approx(expected)


def test_noise_is_that_of_gradients_taken_by_hand(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    table = execute(SPEC, tmp_path, device="cpu").result["tables"]["gradient_noise"]
    model = load_model(RunDirectory(tmp_path, TRAINING.fingerprint()).path)
    task = TRAINING.build_task()
    stream = RandomStream(TRAINING.seed, task.name, Split.ANALYSIS)
    inputs = task.draw(stream.words(0, 5 * 16 * 3).reshape(-1, 3))
    gradients, losses = [], []
    for rows in np.split(inputs, 5):
        model.zero_grad()
        logits = model(torch.from_numpy(rows), 3)
        targets = torch.from_numpy(rows[:, ::-1].copy())
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        gradients.append(torch.cat([one.grad.flatten() for one in model.parameters()]))
        losses.append(loss.item())
    signal, noise = gradient_noise(torch.stack(gradients), 16)
    assert table["loss"][-1] == pytest.approx(np.mean(losses), rel=1e-5)
    assert table["signal"][-1] == pytest.approx(signal, rel=1e-3)
    assert table["noise"][-1] == pytest.approx(noise, rel=1e-4)
    assert table["noise_scale"][-1] == pytest.approx(np.log2(noise / signal), rel=1e-3)


def test_without_classes_of_tokens_there_is_one_row_a_level(tmp_path):
    task = {"kind": "reverse_ordering", "vocab_size": 4, "length": 3, "num_held_out": 8}
    plain = SPEC.override({"task": task})
    execute(plain.first_stage(), tmp_path, device="cpu")
    result = execute(plain, tmp_path, device="cpu").result
    assert result["tables"]["at_levels"]["disturbants"] == ["all"] * 3
    assert -1 <= result["metrics"]["lead"] <= 1
