"""SIGKILL at random moments, many times: the run ends in the same bits."""

import json
import multiprocessing
import random
import signal
import time
from pathlib import Path

import pytest

from pernn.runs import RunSpec, execute
from pernn.store import RunDirectory

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


def contents(root: Path) -> dict[str, bytes]:
    folder = RunDirectory(root, SPEC.fingerprint()).path
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("environment.json", "journal.jsonl", "lock")
    }


@pytest.mark.slow
def test_killed_many_times_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    execute(SPEC, tmp_path / "undisturbed", device="cpu")
    context = multiprocessing.get_context("forkserver")
    # Starting torch costs seconds: the server does it once and each victim is forked from it.
    # The first optimiser imports another heavy module.
    context.set_forkserver_preload(["pernn.runs.execution", "torch._dynamo"])
    moments = random.Random(7)
    root = tmp_path / "killed"
    directory = RunDirectory(root, SPEC.fingerprint())
    kills = 0
    while directory.read_result() is None:
        victim = context.Process(target=execute, args=(SPEC, root), kwargs={"device": "cpu"})
        victim.start()
        if kills < NUM_KILLS:
            before = directory.checkpoints.updates()[-1:]
            deadline = time.monotonic() + 30
            # Wait for some progress, so that the kills are spread over the whole run.
            while directory.checkpoints.updates()[-1:] == before and victim.is_alive():
                assert time.monotonic() < deadline
                time.sleep(0.002)
            time.sleep(moments.random() * 0.03)
            victim.kill()
            kills += victim.is_alive()
        victim.join()
        assert victim.exitcode in (0, -signal.SIGKILL)
    events = [line["event"] for line in directory.read_journal()]
    print(f"{kills} kills, {events.count('resumed')} resumptions")
    assert kills >= NUM_KILLS // 2
    assert events.count("resumed") >= kills - 1
    assert contents(root) == contents(tmp_path / "undisturbed")
    result = json.loads((directory.path / "result.json").read_text())
    assert result["metrics"]["token_accuracy"] > 0.2
