"""A sweep's overhead beyond its trials' own time, with local workers, and where it goes.

    python benchmarks/overhead.py [--trials 40] [--seconds 10] [--jobs 2]

A trial's own time is what its journal says: updates, metrics, checkpoints and the final evaluation.
The rest is the overhead: starting workers, making networks and data, locks, the driver, and at the
end a worker that waits for the other one.
"""

import tempfile
import time
from pathlib import Path

import typer
from turns import print_table
from updates import make_spec

from pernn.lab.runners import LocalRunner, TrialEvent
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


def main(trials: int = 40, seconds: float = 10.0, jobs: int = 2) -> None:
    """Print what the time of a sweep consists of, whose trials take about so many seconds."""
    found = measure_overhead(trials, seconds, jobs)
    share = found.pop("overhead share")
    print_table(
        {"time of a worker": name, "s": f"{value:.2f}", "share": f"{value / found['wall']:.2%}"}
        for name, value in found.items()
    )
    print(
        f"\n{trials} trials, {jobs} workers: overhead {share:.2%} of the trials' own time "
        f"(goal: under {GOAL:.0%})"
    )


if __name__ == "__main__":
    typer.run(main)
