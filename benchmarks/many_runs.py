"""The store at 20,000 finished trials: CPU seconds and megabytes that each verb takes.

The run directories are made up but of the real form: the specs are those of an experiment's
published grid with as many seeds as are needed, the files are written by the store itself. Each
verb is a process of its own, measured whole, interpreter's start included. Seconds are those of the
processor: they hold on a busy machine, too.

    python benchmarks/many_runs.py [--runs 20000] [--lines 40] [--sweeps 1] [--keep FOLDER]

Aim: 30 CPU seconds and 500 MB for each verb, also with `--runs 1 --lines 1000000`, and of
`report --all` with `--sweeps 2000`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import typer

from pernn.lab.experiments import find_experiment
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory, Sweep, save_sweep

EXPERIMENT, SCALE = "vocabulary_size", "paper"
SWEEP = f"{EXPERIMENT}-{SCALE}"

# Made up: to ask for it would load torch, whose memory every child would seem to have.
ENVIRONMENT = {
    "python": "3.11.9",
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "commit": None,
    "system": "Linux",
    "processor": "made up, 2 logical CPUs",
    "device": "cpu",
    "device_name": "cpu",
    "cpu_capability": "AVX2",
    "threads": 1,
    "kernels": "compiled (made up)",
}


def specs() -> Iterator[RunSpec]:
    """Return the experiment's trials, seed after seed, without end."""
    grid = [
        spec.model_dump(exclude={"seed"})
        for spec in find_experiment(EXPERIMENT).scales[SCALE]()
        if spec.seed == 111
    ]
    for seed in count(1):
        for values in grid:
            yield RunSpec.model_validate({**values, "seed": seed})


def finish(root: Path, spec: RunSpec, num_lines: int) -> str:
    """Write the files of a finished trial, half of whose metrics are on its training."""
    run = RunDirectory(root, spec.fingerprint())
    noise = random.Random(run.fingerprint)
    run.path.mkdir(parents=True)
    run.write_spec(spec.dump())
    run.write_environment(ENVIRONMENT)
    run.note("started", update=0)
    last = spec.training.iterations
    updates = [last * step // 20 for step in range(1, 21)]
    curve = [measure(noise) for _ in updates]
    with (run.path / "metrics.jsonl").open("w") as file:
        for number in range(num_lines):
            kind, values = ("train", "test")[number % 2], curve[number % len(curve)]
            file.write(f"{json.dumps({'update': number // 2 + 1, 'kind': kind, **values})}\n")
    run.note("finished", update=last, updates=last, seconds=1000.0)
    columns = {name: [values[name] for values in curve] for name in curve[0]}
    percent = [round(100 * update / last) for update in updates]
    run.write_result(
        {
            "fingerprint": run.fingerprint,
            "metrics": curve[-1],
            "tables": {"by_update": {"percent": percent, "update": updates, **columns}},
            "num_parameters": noise.randrange(10**5, 10**7),
            "weights_sha256": f"{noise.getrandbits(256):064x}",
        }
    )
    return run.fingerprint


def measure(noise: random.Random) -> dict[str, float]:
    """Make up an evaluation."""
    accuracy = noise.random()
    return {
        "loss": -noise.random(),
        "token_accuracy": accuracy,
        "sequence_accuracy": accuracy**8,
        "damerau_levenshtein": 64 * (1 - accuracy),
        "damerau_levenshtein_share": 1 - accuracy,
    }


def verbs(root: Path) -> dict[str, list[str]]:
    """Return the commands that are timed."""
    return {
        "status": ["status"],
        "status SWEEP": ["status", SWEEP],
        "claims": ["report", "--claims", SWEEP],
        "export": ["export", SWEEP, "-o", str(root / "records.csv")],
        "export, curves": ["export", SWEEP, "--curves", "-o", str(root / "curves.csv")],
        "compare": ["compare", "encoding.kind=sinusoidal", "encoding.kind=none", "--sweep", SWEEP],
        "prune": ["prune", "--dry-run"],
        "publish": ["publish", SWEEP, "--to", str(root / "published")],
        "report": ["report", SWEEP],
        "report, all": ["report", "--all", "--ignore-published", "-o", str(root / "study.html")],
    }


def measure_verb(words: Sequence[str], root: Path) -> dict[str, float]:
    """Run a verb in a process of its own; return CPU seconds and megabytes, or its status."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pernn", *words, "-r", str(root)], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        return {"status": os.waitstatus_to_exitcode(status)}
    return {"seconds": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024}


def fill(root: Path, num_runs: int, num_lines: int, num_sweeps: int) -> None:
    """Fill a results directory."""
    found = [finish(root, spec, num_lines) for spec in islice(specs(), num_runs)]
    save_sweep(root, Sweep(SWEEP, EXPERIMENT, SCALE, {}, found))
    for number in range(1, num_sweeps):
        name, own = f"{SWEEP}-{number:08x}", found[number :: num_sweeps - 1]
        save_sweep(root, Sweep(name, EXPERIMENT, SCALE, {"seed": [number]}, own))


def main(runs: int = 20_000, lines: int = 40, sweeps: int = 1, keep: Path | None = None) -> None:
    """Time the verbs that read, over runs with so many lines of metrics, shared by sweeps."""
    # Making the runs is not what is timed.
    os.fsync = lambda descriptor: None
    with tempfile.TemporaryDirectory() as temporary:
        root = keep or Path(temporary)
        fill(root, runs, lines, sweeps)
        for name, words in verbs(root).items():
            found = measure_verb(words, root)
            values = "  ".join(f"{one:9.1f} {unit}" for unit, one in found.items())
            print(f"pernn {name:18} {values}", flush=True)


if __name__ == "__main__":
    typer.run(main)
