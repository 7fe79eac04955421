"""Errors, states and gradients in checkpoints at levels: the same bits, and what is refused."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from command_line import call, succeed
from pernn.analysis import (
    gradient_noise,
    input_gradients,
    lead,
    log_slope,
    position_changes,
    subspace_overlap,
)
from pernn.errors import ConfigError, MachineError
from pernn.lab.runs import RunSpec, execute, load_model
from pernn.lab.runs.analysis import FEWER, build_measure, nearest_checkpoints
from pernn.lab.store import RunDirectory
from pernn.lab.training import TrainingConfig
from pernn.randomness import RandomStream, Split
from tiny import tiny

LEARNING = {
    "iterations": 60,
    "batch_size": 16,
    "learning_rate": 0.02,
    "warmup_updates": 5,
    "log_interval": 5,
    "evaluation_interval": 30,
    "checkpoint_interval": 10,
    "keep_interval": 10,
}
TRAINING = tiny("reverse_ordering", "gru", vocab_size=4, length=3, training=LEARNING)
LEVELS = (0.3, 0.4, 0.99)
ANALYSIS = {"kind": "anatomy", "levels": LEVELS, "num_sequences": 200}
SPEC = TRAINING.override({"analysis": ANALYSIS})
DESCENDING = tiny("dual_frequency", vocab_size=4, length=3, num_per_cell=2, training=LEARNING)
DESCENT = DESCENDING.override(
    {"analysis": {"kind": "descent", "levels": LEVELS, "num_per_condition": 3, "num_batches": 5}}
)


def nearest(levels, curve, iterations=100, interval=10, keep=10):
    training = TrainingConfig(
        iterations=iterations, checkpoint_interval=interval, keep_interval=keep
    )
    lines = [{"update": n, "kind": "train", "token_accuracy": a} for n, a in curve]
    test = {"update": 5, "kind": "test", "token_accuracy": 1.0}
    return nearest_checkpoints(levels, training, [test, *lines])


def test_the_nearest_kept_checkpoint_stands_for_a_level():
    curve = [(6, 0.1), (14, 0.5), (27, 0.4), (31, 0.8), (50, 0.7)]
    assert nearest((0.5, 0.8), curve) == {10: [0.5], 30: [0.8]}
    # Before the first one there is none; one that never came is measured at the end.
    assert nearest((0.05, 0.9), curve) == {10: [0.05], 100: [0.9]}
    assert nearest((0.45, 0.5, 0.8), curve, keep=None) == {100: [0.45, 0.5, 0.8]}
    assert nearest((0.8,), curve, interval=20, keep=30) == {60: [0.8]}


def test_a_spec_names_what_follows_on_the_training():
    assert SPEC.first_stage() == TRAINING
    assert SPEC.num_updates == 60 + 3
    assert RunSpec.load(SPEC.dump()) == SPEC
    assert SPEC.override({"analysis.levels": [0.5]}).analysis.levels == (0.5,)
    older = TRAINING.override({"analysis": {"num_per_condition": 3}})
    assert "kind" not in older.dump()["analysis"]
    for wrong, message in (
        ({"kind": "anatomy", "pairs": 1}, r"analysis\.AnatomyAnalysis\.pairs: unknown key"),
        ({"kind": "anatomy", "levels": [1.5]}, r"analysis\.AnatomyAnalysis\.levels\.0"),
        ({"kind": "physiology"}, "kind: Input should be 'anatomy', got 'physiology'"),
    ):
        with pytest.raises(ConfigError, match=message):
            TRAINING.override({"analysis": wrong})


def test_a_result_has_a_table_of_each_kind_of_error_with_the_librarys_numbers(tmp_path):
    trained = execute(TRAINING, tmp_path, device="cpu").result
    whole = execute(SPEC, tmp_path, device="cpu").result
    tables = whole["tables"]
    found = tables["anatomy"]
    assert sorted(set(found["level"])) == [*LEVELS]
    assert found["update"] == sorted(found["update"])
    assert found["update"][-1] == 60
    assert len(tables["errors"]["share"]) == 3 * 2
    assert tables["tokens"]["step"][:6] == [1, 2, 2, 3, 3, 3]
    assert tables["time"]["step"][:6] == [1, 2, 3, 4, 5, 6]
    assert tables["noise"]["noise"][:2] == [0.01, 0.1]
    shares = np.array(tables["errors"]["share"]).reshape(3, 2)
    assert shares.sum(axis=1) == pytest.approx(found["sequence_share"])
    assert shares[:, 0] == pytest.approx(found["neighbour_share"])
    assert all(0 <= value <= 1 for name in ("overlap", "time_read") for value in found[name])
    assert whole["metrics"].keys() == trained["metrics"].keys()
    model = load_model(RunDirectory(tmp_path, TRAINING.fingerprint()).path)
    task = TRAINING.build_task()
    words = RandomStream(TRAINING.seed, task.name, Split.ANALYSIS).words(0, 200 * 3)
    inputs = task.draw(words.reshape(200, 3))
    noisy = SPEC.override({"analysis.noise": [1e-6, 1.0]})
    measure = build_measure(noisy, torch.device("cpu"), budget=0)
    tables = measure(model, [0.5])
    few = torch.from_numpy(inputs[: 200 // FEWER])
    with torch.no_grad():
        answers = model(few, 3).argmax(2).numpy()
        gates = model.project(few, 3)[:, :3]
    slope = log_slope(input_gradients(model.core, gates, 8)).mean().item()
    assert tables["anatomy"]["gradient_slope"] == [pytest.approx(slope)]
    whole = model(torch.from_numpy(inputs), 3).argmax(2).numpy()
    assert (whole[: len(answers)] == answers).all()
    right = (whole == inputs[:, ::-1]).mean()
    assert tables["anatomy"]["accuracy"] == [pytest.approx(right)]
    # What noise costs is nothing without any, and not more than there is.
    without, much = tables["noise"]["loss"]
    assert without == pytest.approx(0, abs=0.01)
    assert 0.1 < much < right
    overlap = subspace_overlap(position_changes(model.core, gates, gates.roll(1, 0)))
    others = overlap[~torch.eye(3, dtype=torch.bool)].mean().item()
    assert tables["anatomy"]["overlap"] == [pytest.approx(others, rel=1e-5)]
    # The last token is read from the state that has just read it, the first of three less well.
    assert tables["tokens"]["read"][0] == 1.0


@pytest.mark.parametrize(
    ("task", "analysis", "said"),
    [
        (tiny("variable_length"), ANALYSIS, "sequences of one length"),
        (tiny("infinite_vocabulary"), ANALYSIS, "measured on tokens"),
        (tiny(length=1, num_held_out=2), ANALYSIS, "length above 1, got .* at length 1"),
        (tiny(vocab_size=9999), {**ANALYSIS, "num_sequences": 32}, "too few to read 9999"),
        (tiny("sorting"), {"num_per_condition": 2}, "got Sort"),
        (tiny("zipf"), DESCENT.analysis.dump(), "Zipf allows no such sequences"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_it_is_trained(tmp_path, task, analysis, said):
    with pytest.raises(ConfigError, match=said):
        execute(task.override({"analysis": analysis}), tmp_path, device="cpu")
    assert not any(tmp_path.iterdir())


def test_a_missing_package_is_named_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.discriminant_analysis", None)
    with pytest.raises(MachineError, match=r"linear probes need scikit-learn: .*\[probes\]"):
        execute(SPEC, tmp_path, device="cpu")
    assert not any(tmp_path.iterdir())


def test_a_network_whose_gradients_vanish_has_an_anatomy_without_a_slope(tmp_path):
    stuck = SPEC.override({"training.learning_rate": 1000.0, "training.warmup_updates": 0})
    table = execute(stuck, tmp_path, device="cpu").result["tables"]["anatomy"]
    assert None in table["gradient_slope"]
    assert None not in table["accuracy"]


def test_the_command_sorts_the_wrong_answers_to_the_held_out_sequences(tmp_path):
    result = execute(TRAINING, tmp_path, device="cpu").result
    run = RunDirectory(tmp_path, TRAINING.fingerprint()).path
    done = succeed("errors", run, "--json", "--device", "cpu")
    found = json.loads(done.stdout)
    assert found["num_answers"] == 32 * 3
    accuracy = 1 - found["num_wrong"] / found["num_answers"]
    assert accuracy == pytest.approx(result["metrics"]["token_accuracy"])
    assert found["distance"] == [1, 2]
    assert sum(found["share"]) + found["no_token"] == pytest.approx(1)
    assert "not in the input" in call("errors", run, "--device", "cpu").stdout

    sorting = tiny("sorting")
    execute(sorting, tmp_path, device="cpu")
    done = call("errors", RunDirectory(tmp_path, sorting.fingerprint()).path)
    assert done.returncode == 2
    assert "as in reversing and copying" in done.stderr


def test_every_checkpoint_has_its_rows_and_noise_is_that_of_gradients_taken_by_hand(tmp_path):
    execute(DESCENDING, tmp_path, device="cpu")
    result = execute(DESCENT, tmp_path, device="cpu").result
    assert DESCENT.num_updates == 60 + 7
    every, noise, found = (
        pd.DataFrame(result["tables"][name])
        for name in ("gradient_stability", "gradient_noise", "at_levels")
    )
    updates = [*range(0, 61, 10)]
    assert noise["update"].tolist() == updates
    assert every["update"].tolist() == [update for update in updates for _ in range(4)]
    lines = RunDirectory(tmp_path, DESCENDING.fingerprint()).read_metrics()
    measured = nearest_checkpoints(LEVELS, DESCENDING.training, lines)
    rows = zip(found["update"], found["level"], found["disturbants"], strict=True)
    assert sorted(rows) == sorted(
        (update, level, word)
        for update, levels in measured.items()
        for level in levels
        for word in ("Frequent", "Rare")
    )
    similarities = every.groupby(["disturbants", "update"])["similarity"].mean()
    noise = noise.set_index("update")
    for row in found.itertuples():
        assert row.similarity == pytest.approx(similarities[row.disturbants, row.update])
        assert row.loss == noise["loss"][row.update]
        assert row.noise_scale == noise["noise_scale"][row.update]
    rare, losses = similarities["Rare"].to_numpy()[1:], noise["loss"].to_numpy()[1:]
    assert result["metrics"]["lead"] == pytest.approx(lead(rare, losses))
    table = result["tables"]["gradient_noise"]
    model = load_model(RunDirectory(tmp_path, DESCENDING.fingerprint()).path)
    task = DESCENDING.build_task()
    stream = RandomStream(DESCENDING.seed, task.name, Split.ANALYSIS)
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
    plain = DESCENT.override({"task": task})
    execute(plain.first_stage(), tmp_path, device="cpu")
    result = execute(plain, tmp_path, device="cpu").result
    assert result["tables"]["at_levels"]["disturbants"] == ["all"] * 3
    assert -1 <= result["metrics"]["lead"] <= 1
