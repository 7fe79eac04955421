"""Tiny trials, drivers over them, and the comparison with an undisturbed sweep.

As a program it is a driver: results directory, file of specs, number of workers. With none the
trials run in this process. Events other than progress are printed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pernn.lab.runners import InlineRunner, LocalRunner, TrialEvent
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory

PATIENCE = 300.0
"""Seconds within which something has to happen."""
FEW = 8
OF_THE_DAY = ("environment.json", "journal.jsonl", "lock")


def make_trials(number: int, num_updates: int) -> list[RunSpec]:
    """Make trials of about 10 ms an update that checkpoint often: a kill soon meets work."""
    task = {"kind": "reverse_ordering", "vocab_size": 64, "length": 16, "num_held_out": 64}
    training = {"iterations": num_updates, "batch_size": 128, "log_interval": 7}
    intervals = {"checkpoint_interval": 2, "evaluation_interval": max(1, num_updates // 4)}
    spec = RunSpec.load(
        {
            "task": task,
            "core": {"kind": "gru", "hidden_size": 64},
            "encoding": {"kind": "sinusoidal", "size": 32},
            "embedding_size": 32,
            "training": training | intervals,
        }
    )
    return [spec.override({"seed": seed}) for seed in range(number)]


class Driver:
    """A driver in a process of its own, with so many workers, or none."""

    def __init__(self, root: Path, specs: Sequence[RunSpec], jobs: int, **environment: str) -> None:
        root.mkdir(parents=True, exist_ok=True)
        file = root / "trials.json"
        file.write_text(json.dumps([spec.dump() for spec in specs]))
        self.said = root / f"driver-{time.monotonic_ns()}.jsonl"
        words = [sys.executable, __file__, str(root), str(file), str(jobs)]
        env = os.environ | environment
        with self.said.open("wb") as output, (root / "drivers.log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=output, stderr=log, env=env)

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    @property
    def alive(self) -> bool:
        """Return whether it still runs."""
        return self.process.poll() is None

    def workers(self) -> list[int]:
        """Return the process ids of its workers."""
        return children(self.process.pid)

    def finish(self) -> None:
        """Wait until all trials are done."""
        assert self.process.wait(timeout=PATIENCE) == 0, self.said.parent / "drivers.log"

    def end(self) -> None:
        """Kill it and its workers, if there are any left."""
        for process in [*self.workers(), self.process.pid] if self.alive else []:
            send(process, signal.SIGKILL)
        self.process.wait()


def children(process: int) -> list[int]:
    """Return the process ids of a process's children."""
    words = ["pgrep", "--parent", str(process)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def send(process: int, number: signal.Signals) -> bool:
    """Send a signal; says whether there was a process."""
    with suppress(ProcessLookupError):
        os.kill(process, number)
        return True
    return False


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for something."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "nothing happened for too long"
        time.sleep(0.01)


def newest(root: Path, spec: RunSpec) -> int:
    """Return the update of a trial's newest checkpoint."""
    return max(RunDirectory(root, spec.fingerprint()).checkpoints.updates(), default=0)


def all_done(root: Path, specs: Sequence[RunSpec]) -> bool:
    """Return whether every trial has a result."""
    return all((folder_of(root, spec) / "result.json").exists() for spec in specs)


def folder_of(root: Path, spec: RunSpec) -> Path:
    """Return a trial's directory."""
    return RunDirectory(root, spec.fingerprint()).path


def run_undisturbed(root: Path, specs: Sequence[RunSpec]) -> None:
    """Carry the same trials out in peace; a few of them in this process, to be quicker."""
    runner = InlineRunner(device="cpu") if len(specs) <= FEW else LocalRunner(2, device="cpu")
    runner.run(specs, root, lambda event: None)
    assert all_done(root, specs)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a run that must not depend on the day."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in OF_THE_DAY and not path.name.startswith("lease-")
    }


def compare(root: Path, undisturbed: Path, specs: Sequence[RunSpec]) -> dict[str, int]:
    """Make sure that every trial was done once and to the same bits.

    A checkpoint where a driver's death had its trial stop is nowhere in the undisturbed sweep.
    """
    count = {"results": 0, "finished lines": 0, "resumptions": 0, "files equal": 0}
    for spec in specs:
        mine, other = (contents(folder_of(one, spec)) for one in (root, undisturbed))
        events = [one["event"] for one in RunDirectory(root, spec.fingerprint()).read_journal()]
        assert events.count("finished") <= 1, events
        assert "finished" not in events[:-1], events
        last = f"checkpoints/update-{spec.training.iterations:09d}/tensors.safetensors"
        assert {"spec.json", "metrics.jsonl", "result.json", last} <= mine.keys(), mine.keys()
        extra = {name for name in mine.keys() - other.keys() if "update-" not in name}
        assert not extra, extra
        for name in mine.keys() & other.keys():
            assert mine[name] == other[name], f"{folder_of(root, spec) / name} differs"
            count["files equal"] += 1
        count["results"] += 1
        count["finished lines"] += events.count("finished")
        count["resumptions"] += events.count("resumed")
    return count


def tell(event: TrialEvent) -> None:
    """Print an event."""
    if event.is_end or event.elsewhere or not event.update:
        print(json.dumps(asdict(event)), flush=True)


def main() -> None:
    """Drive trials as the command line says."""
    root, file, jobs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    specs = [RunSpec.load(values) for values in json.loads(file.read_text())]
    runner = LocalRunner(jobs=jobs, device="cpu") if jobs else InlineRunner(device="cpu")
    runner.run(specs, root, tell)


if __name__ == "__main__":
    main()
