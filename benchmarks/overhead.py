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
from pernn.lab.runs.estimates import measure
from pernn.lab.store import RunDirectory


def main(trials: int = 40, seconds: float = 10.0, jobs: int = 2) -> None:
    """Print the overhead of a sweep whose trials take about so many seconds."""
    spec = make_spec("gru", (64, 64, 16, 64))
    count = max(10, round(seconds / min(measure(spec, "cpu", 1)[0])))
    intervals = ("training.checkpoint_interval", "training.evaluation_interval")
    sizes = {"training.iterations": count, **dict.fromkeys(intervals, max(1, count // 5))}
    specs = [spec.override({**sizes, "seed": seed}) for seed in range(trials)]
    with tempfile.TemporaryDirectory(prefix="pernn-overhead-") as folder:
        root, begun = Path(folder), time.perf_counter()
        LocalRunner(jobs=jobs, device="cpu").run(specs, root, lambda event: None)
        wall = time.perf_counter() - begun
        last = [RunDirectory(root, spec.fingerprint()).read_journal()[-1] for spec in specs]
    assert all(line["event"] == "finished" for line in last), last
    share = jobs * wall / sum(line["seconds"] for line in last) - 1
    about = f"{trials} trials, {jobs} workers"
    print(f"{about}: overhead {share:.2%} of the trials' own time (goal: under 3%)")


if __name__ == "__main__":
    typer.run(main)
