"""SIGKILL at random moments, many times: the run ends in the same bits."""

import multiprocessing
import random
import signal
import time

import pytest

from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory
from runs.bits import contents
from tiny import after, tiny

SPEC = tiny(
    "reverse_ordering",
    "gru",
    hidden_size=16,
    training={"iterations": 120, "checkpoint_interval": 4, "keep_interval": 60, "log_interval": 7},
)
LONGER = {"training.iterations": 120, "training.checkpoint_interval": 4}
FIRST = tiny("reverse_ordering", vocab_size=4, training={"iterations": 60})
KINDS = ("variable_length", "language_modelling")
IN_TWO_STAGES = after(FIRST, SPEC)


def run_and_kill(spec, root, num_kills):
    """Run to the end, killed so many times on the way; gives how often it worked."""
    context = multiprocessing.get_context("forkserver")
    # Starting torch costs seconds: the server does it once and each victim is forked from it.
    context.set_forkserver_preload(["pernn.lab.runs.execution", "torch.optim"])
    moments = random.Random(7)
    stages = [stage for stage in (spec.first_stage(), spec) if stage is not None]
    directories = [RunDirectory(root, stage.fingerprint()) for stage in stages]

    def progress():
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


@pytest.mark.parametrize(
    "spec",
    [
        *(pytest.param(tiny(kind).override(LONGER), id=kind) for kind in KINDS),
        pytest.param(IN_TWO_STAGES, id="two stages"),
    ],
)
def test_a_run_survives_kills(tmp_path, spec):
    """Runs of other tasks are the same code over other batches; each is cut in test_tasks."""
    execute(spec, tmp_path / "undisturbed", device="cpu")
    assert run_and_kill(spec, tmp_path / "killed", 3) >= 1
    assert contents(spec, tmp_path / "killed") == contents(spec, tmp_path / "undisturbed")
