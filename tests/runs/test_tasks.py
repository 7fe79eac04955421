"""Every task trains, stops and goes on, and ends in the same bits."""

import json
from pathlib import Path

import pytest
import torch

from pernn.runs import RunSpec, build, estimate_cost, execute
from pernn.store import RunDirectory
from pernn.tasks import TASKS

DETERMINISTIC = ("spec.json", "metrics.jsonl", "result.json")


def tiny(kind: str) -> RunSpec:
    return RunSpec.load(
        {
            "task": {"kind": kind, "vocab_size": 6, "length": 4, "num_held_out": 32},
            "core": {"kind": "lstm", "hidden_size": 8},
            "encoding": {"kind": "sinusoidal", "size": 8},
            "embedding_size": 8,
            "training": {
                "iterations": 12,
                "batch_size": 4,
                "warmup_updates": 2,
                "log_interval": 3,
                "evaluation_interval": 5,
                "checkpoint_interval": 4,
            },
        }
    )


def contents(spec: RunSpec, root: Path) -> dict[str, bytes]:
    folder = RunDirectory(root, spec.fingerprint()).path
    files = [folder / name for name in DETERMINISTIC]
    files += sorted((folder / "checkpoints" / "update-000000012").iterdir())
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("kind", TASKS.names())
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path: Path, kind: str) -> None:
    spec = tiny(kind)
    whole = execute(spec, tmp_path / "whole", device="cpu")
    assert whole.status == "finished"
    assert whole.result is not None
    assert 0 <= whole.result["metrics"]["token_accuracy"] <= 1
    for cut in (3, 8):
        stop = execute(spec, tmp_path / "cut", device="cpu", listener=lambda n, cut=cut: n != cut)
        assert stop.status == "stopped"
    assert execute(spec, tmp_path / "cut", device="cpu").status == "finished"
    assert contents(spec, tmp_path / "cut") == contents(spec, tmp_path / "whole")
    stored = json.loads(contents(spec, tmp_path / "cut")["spec.json"])
    assert RunSpec.load(stored["spec"]) == spec


@pytest.mark.parametrize("kind", TASKS.names())
def test_the_network_has_the_rows_that_the_task_needs(kind: str) -> None:
    spec = tiny(kind)
    model = build(spec, torch.device("cpu")).model
    assert len(model.embedding.weight) == 6 + spec.task.build().num_extra_rows
    assert estimate_cost(spec).steps == 12 * spec.task.build().num_steps
