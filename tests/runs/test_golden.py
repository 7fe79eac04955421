"""Initial weights and the first losses of every core, which no version may change.

After a change with a Numerics entry: `PYTHONPATH=tests python tests/runs/test_golden.py`.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pernn.kernels import without_kernels
from pernn.lab.cores import CORES
from pernn.lab.runs import build, weights_digest
from pernn.lab.training import TrainState, advance
from reports.test_drawn import agree
from tiny import tiny

GOLDEN = Path(__file__).parents[1] / "golden" / "trainings.json"
CPU = torch.device("cpu")
TRAINING = {"iterations": 10, "log_interval": 1, "learning_rate": 0.01}


def training(core):
    """The first values of each tensor, and the losses, of a training without kernels."""
    spec = tiny(core=core, training=TRAINING)
    with without_kernels():
        trial = build(spec, CPU)
        weights = trial.model.state_dict()
        first = {name: one.flatten()[:3].tolist() for name, one in weights.items()}
        state = TrainState.fresh(trial.model, trial.preset, spec.training.optimizer)
        events = advance(state, trial.stream, spec.training, trial.preset, CPU)
        losses = [one.values["loss"] for one in events if one.kind == "train"]
    return {"first": first, "losses": losses}


@pytest.mark.parametrize("core", CORES.builtin)
def test_a_training_begins_as_it_did(core):
    """With a tolerance, as sums of other processors differ in their last bits."""
    golden = json.loads(GOLDEN.read_text())
    assert golden.keys() == {*CORES.builtin}
    agree(training(core), golden[core], core, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("kind", ["random", "learned"])
def test_networks_of_two_encodings_of_one_width_share_the_cores_weights(kind):
    one, two = (tiny().override({"encoding.kind": name}) for name in ("sinusoidal", kind))
    one, two = (build(spec, CPU).model.core.state_dict() for spec in (one, two))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_digest_of_weights_tells_which_tensor_is_which():
    one, two = np.zeros(3), np.ones(3)
    named = (("model.a", "model.b"), ("model.b", "model.a"), ("model.a", "model.c"))
    found = {weights_digest(dict(zip(names, (one, two), strict=True))) for names in named}
    assert len(found) == 3


if __name__ == "__main__":
    lines = (f"{json.dumps(core)}: {json.dumps(training(core))}" for core in CORES.builtin)
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
