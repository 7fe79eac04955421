"""SIGKILL at random moments, many times: the run ends in the same bits."""

import json
import multiprocessing
import random
import signal
import time
from pathlib import Path

import pytest
from scenarios.trials import contents as deterministic_files
from scenarios.trials import folder_of

from pernn.lab.runs import RunSpec, execute
from pernn.lab.store import RunDirectory
from pernn.lab.tasks import TASKS
from runs.test_tasks import tiny

NUM_KILLS = 30

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 8, "length": 6, "num_held_out": 64},
        "core": {"kind": "gru", "hidden_size": 16},
        "encoding": {"kind": "learned", "size": 8},
        "embedding_size": 8,
        "training": {
            "iterations": 900,
            "batch_size": 8,
            "learning_rate": 0.01,
            "log_interval": 7,
            "evaluation_interval": 90,
            "checkpoint_interval": 4,
            "keep_interval": 500,
        },
    }
)


def contents(spec: RunSpec, root: Path) -> dict[str, bytes]:
    """Every deterministic file of a run, and of its pretraining."""
    stages = [stage for stage in (spec, spec.first_stage()) if stage is not None]
    return {
        f"{stage.fingerprint()}/{name}": content
        for stage in stages
        for name, content in deterministic_files(folder_of(root, stage)).items()
    }


def run_and_kill(spec: RunSpec, root: Path, num_kills: int) -> int:
    """Run to the end, killed so many times on the way; gives how often it worked."""
    context = multiprocessing.get_context("forkserver")
    # Starting torch costs seconds: the server does it once and each victim is forked from it.
    context.set_forkserver_preload(["pernn.lab.runs.execution", "torch.optim"])
    moments = random.Random(7)
    stages = [stage for stage in (spec.first_stage(), spec) if stage is not None]
    directories = [RunDirectory(root, stage.fingerprint()) for stage in stages]

    def progress() -> list[int]:
        return [update for one in directories for update in one.checkpoints.updates()[-1:]]

    kills = 0
    while directories[-1].read_result() is None:
        victim = context.Process(target=execute, args=(spec, root), kwargs={"device": "cpu"})
        victim.start()
        if kills < num_kills:
            before = progress()
            deadline = time.monotonic() + 240
            # Wait for some progress, so that the kills are spread over the whole run.
            while progress() == before and victim.is_alive():
                assert time.monotonic() < deadline
                time.sleep(0.002)
            time.sleep(moments.random() * 0.03)
            victim.kill()
            kills += victim.is_alive()
        victim.join()
        assert victim.exitcode in (0, -signal.SIGKILL)
    return kills


@pytest.mark.slow
def test_killed_many_times_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    execute(SPEC, tmp_path / "undisturbed", device="cpu")
    root = tmp_path / "killed"
    kills = run_and_kill(SPEC, root, NUM_KILLS)
    directory = RunDirectory(root, SPEC.fingerprint())
    events = [line["event"] for line in directory.read_journal()]
    print(f"{kills} kills, {events.count('resumed')} resumptions")
    assert kills >= NUM_KILLS // 2
    assert events.count("resumed") >= kills - 1
    assert contents(SPEC, root) == contents(SPEC, tmp_path / "undisturbed")
    result = json.loads((directory.path / "result.json").read_text())
    assert result["metrics"]["token_accuracy"] > 0.2


SLOW = (pytest.mark.slow,)
SAMPLE = ("variable_length", "language_modelling")
"""Tasks that `make test` kills; runs of the others are the same code over other batches.

The two stages below reverse sequences, too.
"""
LONGER = {"training.iterations": 120, "training.checkpoint_interval": 4}
IN_TWO_STAGES = SPEC.override({**LONGER, "training.log_interval": 7}).override(
    {
        "pretraining": {
            "task": SPEC.task.override({"vocab_size": 4}).dump(),
            "training": SPEC.training.override({"iterations": 60}).dump(),
        }
    }
)


@pytest.mark.parametrize(
    "spec",
    [
        *(
            pytest.param(tiny(kind).override(LONGER), id=kind, marks=() if kind in SAMPLE else SLOW)
            for kind in TASKS.names()
        ),
        pytest.param(IN_TWO_STAGES, id="two stages"),
    ],
)
def test_every_task_survives_kills(tmp_path: Path, spec: RunSpec) -> None:
    execute(spec, tmp_path / "undisturbed", device="cpu")
    assert run_and_kill(spec, tmp_path / "killed", 3) >= 1
    assert contents(spec, tmp_path / "killed") == contents(spec, tmp_path / "undisturbed")
