"""A run whose core is S4D: its checkpoints hold its parameters, and it resumes to the same bits."""

from pathlib import Path

import pytest

from pernn.lab.runs import RunSpec, execute
from pernn.lab.store import RunDirectory

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 32},
        "core": {"kind": "s4d", "hidden_size": 8, "num_layers": 2, "state_size": 8},
        "encoding": {"kind": "sinusoidal", "size": 8},
        "embedding_size": 8,
        "training": {
            "iterations": 12,
            "batch_size": 4,
            "learning_rate": 1e-2,
            "warmup_updates": 2,
            "log_interval": 3,
            "evaluation_interval": 7,
            "checkpoint_interval": 5,
        },
    }
)


def contents(root: Path, spec: RunSpec) -> dict[str, bytes]:
    """Everything of a run that must not depend on the day."""
    folder = RunDirectory(root, spec.fingerprint()).path
    files = [folder / name for name in ("spec.json", "metrics.jsonl", "result.json")]
    files += sorted((folder / "checkpoints" / "update-000000012").iterdir())
    return {file.name: file.read_bytes() for file in files}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path: Path, precision: str) -> None:
    spec = SPEC.override({"training.precision": precision})
    assert execute(spec, tmp_path / "whole", device="cpu").state == "finished"
    for cut in (1, 4, 10):
        outcome = execute(
            spec, tmp_path / "cut", device="cpu", on_update=lambda n, cut=cut: n != cut
        )
        assert outcome.state == "stopped"
    assert execute(spec, tmp_path / "cut", device="cpu").state == "finished"
    assert contents(tmp_path / "cut", spec) == contents(tmp_path / "whole", spec)
