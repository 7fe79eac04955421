"""Every task trains, stops and goes on, and ends in the same bits."""

import json

import pytest
import torch

from pernn.lab.runs import RunSpec, build, execute
from pernn.lab.store import RunDirectory
from pernn.lab.tasks import TASKS
from runs.bits import cut
from tiny import tiny


@pytest.mark.parametrize("kind", TASKS.names())
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path, kind):
    spec = tiny(kind)
    whole = cut(spec, tmp_path, (3, 8))
    if kind == "infinite_vocabulary":
        assert -1 <= whole.result["metrics"]["cosine_similarity"] <= 1
    else:
        assert 0 <= whole.result["metrics"]["token_accuracy"] <= 1
    stored = RunDirectory(tmp_path / "cut", spec.fingerprint()).path / "spec.json"
    assert RunSpec.load(json.loads(stored.read_text())["spec"]) == spec


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_run_of_s4d_ends_in_the_same_bits(tmp_path, precision):
    training = {"precision": precision, "evaluation_interval": 7, "checkpoint_interval": 5}
    spec = tiny("reverse_ordering", "s4d", training=training)
    cut(spec.override({"core.num_layers": 2, "core.state_size": 8}), tmp_path, (1, 4, 10))


@pytest.mark.parametrize("kind", TASKS.names())
def test_the_network_has_the_rows_that_the_task_needs(kind):
    spec = tiny(kind)
    model = build(spec, torch.device("cpu")).model
    extra_rows = len(spec.task.build().extra_rows)
    if kind == "infinite_vocabulary":
        # A linear map instead of rows.
        assert (tuple(model.embedding.weight.shape), extra_rows) == ((8, 6), 0)
    else:
        assert len(model.embedding.weight) == spec.task.build().vocab_size + extra_rows


def test_what_is_fed_back_is_told_apart(tmp_path):
    result = execute(tiny("autoregressive"), tmp_path, device="cpu").result
    table, metrics = result["tables"]["by_feedback"], result["metrics"]
    assert table["feedback"] == ["own output", "truth"]
    assert {name: table[name][0] for name in metrics} == metrics
    assert table["loss"][1] != metrics["loss"]


def test_vectors_leave_their_distribution(tmp_path):
    result = execute(tiny("infinite_vocabulary"), tmp_path, device="cpu").result
    table = result["tables"]["cosine"]
    assert list(table) == ["dimension", *(f"q{percent}" for percent in range(0, 101, 5))]
    assert {len(column) for column in table.values()} == {1}
    assert table["dimension"] == [6]
    assert table["q50"] == [result["metrics"]["cosine_median"]]
    # The loss is one minus the mean cosine.
    metrics = result["metrics"]
    assert abs(metrics["loss"] + metrics["cosine_similarity"] - 1) < 1e-6


def test_every_evaluation_has_the_training_loss_since_the_one_before(tmp_path):
    spec = tiny("reverse_ordering")
    curve = execute(spec, tmp_path, device="cpu").result["tables"]["by_update"]
    lines = RunDirectory(tmp_path, spec.fingerprint()).read_metrics()
    logged = {line["update"]: line["loss"] for line in lines if line["kind"] == "train"}
    assert list(logged) == [3, 6, 9, 12]
    assert curve["update"] == [5, 10, 12]
    # A line is the mean of the updates since the line before; it counts where it is written.
    expected = [logged[3], (logged[6] + logged[9]) / 2, logged[12]]
    assert curve["train_loss"] == pytest.approx(expected)
    sparse = spec.override({"training.log_interval": 10})
    curve = execute(sparse, tmp_path, device="cpu").result["tables"]["by_update"]
    assert [value is None for value in curve["train_loss"]] == [True, False, False]
