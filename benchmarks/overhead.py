"""A sweep's overhead beyond its trials' own time, with local workers, and where it goes.

    python benchmarks/overhead.py [--trials 40] [--seconds 10] [--jobs 2]

A trial's own time is what its journal says: updates, metrics, checkpoints and the final evaluation.
The rest is the overhead: starting workers, making networks and data, locks, the driver, and at the
end a worker that waits for the other one.
"""

import argparse
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pernn.lab.runners import LocalRunner, TrialEvent
from pernn.lab.runs import RunSpec
from pernn.lab.runs.estimates import measure
from pernn.lab.store import RunDirectory

GOAL = 0.03


def make_trials(number: int, seconds: float) -> list[RunSpec]:
    """Make trials of about so many seconds each."""
    spec = RunSpec.load(
        {
            "task": {"kind": "reverse_ordering", "vocab_size": 64, "length": 16},
            "core": {"kind": "gru", "hidden_size": 64},
            "encoding": {"kind": "sinusoidal", "size": 64},
            "embedding_size": 64,
            "training": {"batch_size": 64},
        }
    )
    update_seconds = min(measure(spec, "cpu", 1)[0])
    count = max(10, round(seconds / update_seconds))
    interval = max(1, count // 5)
    lengths = {
        "iterations": count,
        "checkpoint_interval": interval,
        "evaluation_interval": interval,
    }
    spec = spec.override({f"training.{key}": value for key, value in lengths.items()})
    return [spec.override({"seed": seed}) for seed in range(number)]


def measure_overhead(number: int, seconds: float, jobs: int) -> dict[str, float]:
    """Run a sweep and take its time apart; all seconds are per worker."""
    specs = make_trials(number, seconds)
    moments: dict[str, list[float]] = {}

    def on_event(event: TrialEvent) -> None:
        if event.is_end or not event.update:
            moments.setdefault("finished" if event.is_end else "started", []).append(
                time.perf_counter()
            )

    with tempfile.TemporaryDirectory(prefix="pernn-overhead-") as folder:
        root, begun = Path(folder), time.perf_counter()
        LocalRunner(jobs=jobs, device="cpu").run(specs, root, on_event)
        wall = time.perf_counter() - begun
        journals = [RunDirectory(root, spec.fingerprint()).read_journal() for spec in specs]
    own = [
        next(one["seconds"] for one in lines if one["event"] == "finished") for lines in journals
    ]
    assert len(moments["finished"]) == number, moments.keys()
    begins, ends = sorted(moments["started"]), sorted(moments["finished"])
    parts = {
        "own": sum(own),
        "starting workers": sum(begins[:jobs]) - jobs * begun,
        "beside updates, in trials": sum(ends) - sum(begins) - sum(own),
        "between trials": sum(begins[jobs:]) - sum(ends[:-jobs]),
        "waiting for the last": jobs * ends[-1] - sum(ends[-jobs:]),
        "leaving": jobs * (begun + wall - ends[-1]),
    }
    per_worker = {name: value / jobs for name, value in parts.items()}
    return {"wall": wall, **per_worker, "overhead share": wall / per_worker["own"] - 1}


def main() -> None:
    """Print what a sweep's time consists of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each trial, about")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    found = measure_overhead(options.trials, options.seconds, options.jobs)
    table = Table("Time of a worker", "s", "share")
    share = found.pop("overhead share")
    for name, value in found.items():
        table.add_row(name, f"{value:.2f}", f"{value / found['wall']:.2%}")
    Console().print(table)
    print(
        f"{options.trials} trials, {options.jobs} workers: overhead {share:.2%} of the trials' own "
        f"time (goal: under {GOAL:.0%})"
    )


if __name__ == "__main__":
    main()
