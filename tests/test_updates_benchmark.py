"""The scripts compute what we compute, and `benchmarks/updates.py` times both."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import updates
from baselines import Samples, ScriptedNetwork, good_update, usual_update
from torch.nn import functional as F
from updates import make_spec

from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec, build
from pernn.lab.training.objective import DeviceBatch, batch_loss
from pernn.models import PlainRNN

CPU = torch.device("cpu")
SHAPE = (16, 6, 5, 9)
CORES = ("elman", "gru", "lstm", "s4d")


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("encoding", ["sinusoidal", "none", "repeated_embedding", "learned"])
def test_a_script_computes_what_we_do(core, encoding):
    trial = build(make_spec(core, SHAPE, encoding=encoding), CPU)
    batch = trial.stream.train(0, 6)
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    script = ScriptedNetwork(trial.model, 10, 5)
    loss, _ = batch_loss(trial.model, DeviceBatch(tokens, targets, 5, 5))
    for all_logits in (True, False):
        logits = script(tokens, all_logits=all_logits)
        torch.testing.assert_close(logits, PlainRNN(trial.model)(tokens, 5), rtol=1e-4, atol=1e-5)
        expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [good_update, usual_update])
def test_scripts_learn(make):
    trial = build(make_spec("gru", SHAPE), CPU)
    update = make(trial, 32, CPU)
    losses = [float(update()) for _ in range(80)]
    assert sum(losses[-5:]) < 0.99 * sum(losses[:5])


def test_scripts_are_for_one_task():
    spec = RunSpec.load({"task": {"kind": "copying_memory", "hold_time": 3}})
    trial = build(spec.override({"core.hidden_size": 4}), CPU)
    with pytest.raises(ConfigError, match="reverse sequences"):
        good_update(trial, 2, CPU)


def test_held_out_samples_are_drawn_again():
    held_out = {(0,), (1,)}
    shown = iter(Samples(3, 1, held_out))
    assert {tuple(next(shown)[0].tolist()) for _ in range(20)} == {(2,)}


def test_updates_are_timed_in_turn():
    spec = make_spec("gru", SHAPE)
    found = updates.compare(spec, CPU, threads=1, rounds=2, scripts=["good", "usual"])
    assert [*found] == ["ours", "good", "usual"]
    assert all(len(times) == 2 and min(times) > 0 for times in found.values())


def test_the_command_prints_ratios_and_memory():
    script = Path(updates.__file__)
    words = ["--shape", "16,4,3,5", "--core", "gru", "--rounds", "1", "--threads", "1", "--memory"]
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    row = [cell.strip() for cell in done.stdout.splitlines()[-1].split("|")[1:-1]]
    assert row[:2] == ["H 16 B 4 L 3 K 5", "gru"]
    assert float(row[2]) > 0
    assert float(row[3].split()[0]) > 0
    assert "threads: 1" in done.stdout
    assert {(64, 64, 8, 192), (128, 64, 16, 256)} <= {*updates.SHAPES}
