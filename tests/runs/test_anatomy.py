"""Errors and states in checkpoints at levels: which ones, the same bits, and what is refused."""

import json

import numpy as np
import pytest
import torch

from command_line import call, succeed
from pernn.analysis import input_gradients, log_slope
from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec, execute, load_model
from pernn.lab.runs.analysis import FEWER, Anatomy, nearest_checkpoints
from pernn.lab.store import RunDirectory
from pernn.lab.training import TrainingConfig
from runs import bits
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
        ({"kind": "anatomy", "pairs": 1}, r"analysis\.pairs: unknown key .*num_sequences"),
        ({"kind": "anatomy", "levels": [1.5]}, r"analysis\.levels\.0"),
        (
            {"kind": "physiology"},
            "analysis: kind must be 'anatomy' or 'descent', .*got 'physiology'",
        ),
        ("anatomy", "analysis: expected a table of keys and values, got 'anatomy'"),
    ):
        with pytest.raises(ConfigError, match=message):
            TRAINING.override({"analysis": wrong})


def test_cut_anywhere_it_ends_in_the_same_bits(tmp_path):
    for name in ("a", "b"):
        execute(TRAINING, tmp_path / name, device="cpu")
    whole = execute(SPEC, tmp_path / "a", device="cpu", threads=2).result
    for cut in (61, 62):
        stop = execute(SPEC, tmp_path / "b", device="cpu", on_update=lambda n, cut=cut: n != cut)
        assert stop.state == "stopped", cut
    execute(SPEC, tmp_path / "b", device="cpu")
    assert bits.contents(SPEC, tmp_path / "a") == bits.contents(SPEC, tmp_path / "b")
    torch.set_num_threads(1)

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
    assert whole["metrics"].keys() == execute(TRAINING, tmp_path / "a").result["metrics"].keys()


def test_numbers_are_those_of_the_library(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    model = load_model(RunDirectory(tmp_path, TRAINING.fingerprint()).path)
    anatomy = Anatomy(SPEC.analysis, TRAINING.build_task(), TRAINING.seed, torch.device("cpu"))
    tables = anatomy.tables(model)
    few = torch.from_numpy(anatomy.inputs[: 200 // FEWER])
    with torch.no_grad():
        answers = model(few, 3).argmax(2).numpy()
        gates = model.project(few, 3)[:, :3]
    slope = log_slope(input_gradients(model.core, gates, 8)).mean().item()
    assert tables["anatomy"]["gradient_slope"] == [pytest.approx(slope)]
    whole = model(torch.from_numpy(anatomy.inputs), 3).argmax(2).numpy()
    assert (whole[: len(answers)] == answers).all()
    right = (whole == anatomy.inputs[:, ::-1]).mean()
    assert tables["anatomy"]["accuracy"] == [pytest.approx(right)]
    # The last token is read from the state that has just read it, the first of three less well.
    assert tables["tokens"]["read"][0] == 1.0


def test_tasks_without_such_answers_are_refused(tmp_path):
    other = tiny("variable_length").override({"analysis": ANALYSIS})
    with pytest.raises(ConfigError, match="sequences of one length"):
        execute(other, tmp_path, device="cpu")


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
