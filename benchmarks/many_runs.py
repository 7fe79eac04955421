"""The store at 20,000 finished trials: CPU seconds and megabytes that each verb takes.

The runs are made up: an experiment's grid with as many seeds as are needed, written by the store.
Each verb is a process of its own, measured whole. Seconds are those of the processor: they hold on
a busy machine, too.

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
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import typer

from pernn.lab.experiments import find_experiment
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory, Sweep, save_sweep

EXPERIMENT, SCALE = "vocabulary_size", "paper"
SWEEP = f"{EXPERIMENT}-{SCALE}"
VERBS = f"""
status
status {SWEEP}
report --claims {SWEEP}
export {SWEEP} -o ROOT/records.csv
export {SWEEP} --curves -o ROOT/curves.csv
compare encoding.kind=sinusoidal encoding.kind=none --sweep {SWEEP}
prune --dry-run
publish {SWEEP} --to ROOT/published
report {SWEEP}
report --all --ignore-published -o ROOT/study.html
"""

# Made up: to ask for it would load torch, whose memory every child would seem to have.
ENVIRONMENT = {
    **dict.fromkeys(("python", "system", "processor", "cpu_capability", "kernels"), "made up"),
    **dict.fromkeys(("device", "device_name"), "cpu"),
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "commit": None,
    "threads": 1,
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
    curve = []
    for _ in updates:
        accuracy, loss = noise.random(), -noise.random()
        accuracies = {"token_accuracy": accuracy, "sequence_accuracy": accuracy**8}
        share = 1 - accuracy
        distances = {"damerau_levenshtein": 64 * share, "damerau_levenshtein_share": share}
        curve.append({"loss": loss, **accuracies, **distances})
    with (run.path / "metrics.jsonl").open("w") as file:
        for number in range(num_lines):
            about = {"update": number // 2 + 1, "kind": ("train", "test")[number % 2]}
            file.write(f"{json.dumps(about | curve[number % len(curve)])}\n")
    run.note("finished", update=last, updates=last, seconds=1000.0)
    columns = {name: [values[name] for values in curve] for name in curve[0]}
    percent = [round(100 * update / last) for update in updates]
    made_up = {
        "num_parameters": noise.randrange(10**5, 10**7),
        "weights_sha256": f"{noise.getrandbits(256):064x}",
    }
    tables = {"by_update": {"percent": percent, "update": updates, **columns}}
    result = {"fingerprint": run.fingerprint, "metrics": curve[-1], "tables": tables}
    run.write_result({**result, **made_up})
    return run.fingerprint


def main(runs: int = 20_000, lines: int = 40, sweeps: int = 1, keep: Path | None = None) -> None:
    """Time the verbs that read, over runs with so many lines of metrics, shared by sweeps."""
    # Making the runs is not what is timed.
    os.fsync = lambda descriptor: None
    with tempfile.TemporaryDirectory() as temporary:
        root = keep or Path(temporary)
        found = [finish(root, spec, lines) for spec in islice(specs(), runs)]
        save_sweep(root, Sweep(SWEEP, EXPERIMENT, SCALE, {}, found))
        for number in range(1, sweeps):
            name, own = f"{SWEEP}-{number:08x}", found[number :: sweeps - 1]
            save_sweep(root, Sweep(name, EXPERIMENT, SCALE, {"seed": [number]}, own))
        for verb in VERBS.strip().splitlines():
            words = [*verb.replace("ROOT", str(root)).split(), "-r", str(root)]
            command = [sys.executable, "-m", "pernn", *words]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            took, needed = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
            said = f"{took:9.1f} seconds {needed:9.1f} megabytes"
            if status:
                said = f"{os.waitstatus_to_exitcode(status):9.1f} status"
            print(f"{said}   pernn {verb}", flush=True)


if __name__ == "__main__":
    typer.run(main)
