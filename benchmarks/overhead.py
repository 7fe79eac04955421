"""A sweep's overhead beyond its trials' own time, with local workers.

    python benchmarks/overhead.py [--trials 40] [--seconds 10] [--jobs 2]

A trial's own time is what its journal says: updates, metrics, checkpoints and the final evaluation.
The rest is the overhead: starting workers, making networks and data, locks, the driver, and at the
end a worker that waits for the other one.
"""

import tempfile
import time
from pathlib import Path

import typer
from updates import make_spec

from pernn.lab.runners import LocalRunner
from pernn.lab.runs import RunSpec
from pernn.lab.runs.estimates import measure
from pernn.lab.store import RunDirectory

GOAL = 0.03


def make_trials(number: int, seconds: float) -> list[RunSpec]:
    """Make trials of about so many seconds each."""
    spec = make_spec("gru", (64, 64, 16, 64))
    update_seconds = min(measure(spec, "cpu", 1)[0])
    count = max(10, round(seconds / update_seconds))
    interval = max(1, count // 5)
    intervals = ("training.checkpoint_interval", "training.evaluation_interval")
    spec = spec.override({"training.iterations": count, **dict.fromkeys(intervals, interval)})
    return [spec.override({"seed": seed}) for seed in range(number)]


def main(trials: int = 40, seconds: float = 10.0, jobs: int = 2) -> None:
    """Print the overhead of a sweep whose trials take about so many seconds."""
    specs = make_trials(trials, seconds)
    with tempfile.TemporaryDirectory(prefix="pernn-overhead-") as folder:
        root, begun = Path(folder), time.perf_counter()
        LocalRunner(jobs=jobs, device="cpu").run(specs, root, lambda event: None)
        wall = time.perf_counter() - begun
        last = [RunDirectory(root, spec.fingerprint()).read_journal()[-1] for spec in specs]
    assert all(line["event"] == "finished" for line in last), last
    share = jobs * wall / sum(line["seconds"] for line in last) - 1
    print(
        f"{trials} trials, {jobs} workers: overhead {share:.2%} of the trials' own time "
        f"(goal: under {GOAL:.0%})"
    )


if __name__ == "__main__":
    typer.run(main)
