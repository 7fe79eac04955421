"""Tiny trials, drivers over them, and the comparison with an undisturbed sweep.

As a program it is a driver: results directory, file of specs, number of workers. With none the
trials run in this process, as on another host. Events other than progress are printed.
"""

import fcntl
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
from pernn.lab.store import RunDirectory, lease

PATIENCE = 300.0
"""Seconds within which something has to happen."""
FEW = 8
OF_THE_DAY = ("environment.json", "journal.jsonl", "lock")


def make_trials(number: int, num_updates: int) -> list[RunSpec]:
    """Make trials of about 10 ms an update that checkpoint often: a kill soon meets work."""
    task = {"kind": "reverse_ordering", "vocab_size": 64, "length": 16, "num_held_out": 64}
    training = {"iterations": num_updates, "batch_size": 128, "log_interval": 7}
    training |= {"checkpoint_interval": 2, "evaluation_interval": max(1, num_updates // 4)}
    core, encoding = {"kind": "gru", "hidden_size": 64}, {"kind": "sinusoidal", "size": 32}
    parts = {"task": task, "core": core, "encoding": encoding, "training": training}
    return [RunSpec.load({**parts, "embedding_size": 32, "seed": seed}) for seed in range(number)]


class Driver:
    """A driver in a process of its own; as a context it is killed with its workers."""

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
        for process in [*self.workers(), self.process.pid] if self.alive else []:
            send(process, signal.SIGKILL)
        self.process.wait()

    @property
    def alive(self) -> bool:
        """Return whether it still runs."""
        return self.process.poll() is None

    def workers(self) -> list[int]:
        """Return the process ids of its workers."""
        return pgrep("--parent", self.process.pid)

    def finish(self) -> None:
        """Wait until all trials are done."""
        assert self.process.wait(timeout=PATIENCE) == 0, self.said.parent / "drivers.log"


def pgrep(*words: object) -> list[int]:
    """Return the process ids that `pgrep` finds."""
    command = ["pgrep", *map(str, words)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
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


def run_of(root: Path, spec: RunSpec) -> RunDirectory:
    """Return a trial's directory."""
    return RunDirectory(root, spec.fingerprint())


def newest(root: Path, spec: RunSpec) -> int:
    """Return the update of a trial's newest checkpoint."""
    return max(run_of(root, spec).checkpoints.updates(), default=0)


def all_done(root: Path, specs: Sequence[RunSpec]) -> bool:
    """Return whether every trial has a result."""
    return all((run_of(root, spec).path / "result.json").exists() for spec in specs)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a run that must not depend on the day."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in OF_THE_DAY and not path.name.startswith("lease-")
    }


def compare(root: Path, specs: Sequence[RunSpec]) -> dict[str, int]:
    """Carry the same trials out in peace; make sure that each was done once, to the same bits.

    A checkpoint where a driver's death had its trial stop is nowhere in the undisturbed sweep.
    """
    undisturbed = root.with_name("undisturbed")
    # A few of them in this process, to be quicker.
    runner = InlineRunner(device="cpu") if len(specs) <= FEW else LocalRunner(2, device="cpu")
    runner.run(specs, undisturbed, lambda event: None)
    count = {"results": 0, "finished lines": 0, "resumptions": 0, "files equal": 0}
    for spec in specs:
        run, peaceful = run_of(root, spec), run_of(undisturbed, spec)
        mine, other = contents(run.path), contents(peaceful.path)
        events = [one["event"] for one in run.read_journal()]
        assert "finished" not in events[:-1], events
        last = f"checkpoints/update-{spec.training.iterations:09d}/tensors.safetensors"
        needed = {"spec.json", "metrics.jsonl", "result.json", last}
        assert needed <= mine.keys() & other.keys(), (mine.keys(), other.keys())
        extra = {name for name in mine.keys() - other.keys() if "update-" not in name}
        assert not extra, extra
        for name in mine.keys() & other.keys():
            assert mine[name] == other[name], f"{run.path / name} differs"
            count["files equal"] += 1
        count["results"] += 1
        count["finished lines"] += events.count("finished")
        count["resumptions"] += events.count("resumed")
    return count


def move_to_another_host() -> None:
    """Give this process another boot id, and locks that reach nobody else."""
    fcntl.flock = lambda *_: None
    lease.this_boot_id = lambda: "another kernel"


def tell(event: TrialEvent) -> None:
    """Print an event."""
    if event.is_end or event.elsewhere or not event.update:
        print(json.dumps(asdict(event)), flush=True)


def main() -> None:
    """Drive trials as the command line says."""
    root, file, jobs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    specs = [RunSpec.load(values) for values in json.loads(file.read_text())]
    if not jobs:
        move_to_another_host()
    runner = LocalRunner(jobs=jobs, device="cpu") if jobs else InlineRunner(device="cpu")
    runner.run(specs, root, tell)


if __name__ == "__main__":
    main()
