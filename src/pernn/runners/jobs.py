"""Jobs on other machines: what a driver and they tell each other through the directory they share.

    results/jobs/<driver>/driver.json     what code the driver runs: a job compares it with its own
    results/jobs/<driver>/<job>.jsonl     what happens to the trials of a job, one event a line

A job gets and gives plain values, and its trials write into the results directory themselves.
"""

import json
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, MachineError
from pernn.runs import RunSpec, describe_commit, describe_versions
from pernn.store import FORMAT, read_json, storing, to_json, write_atomically

from .runner import ENDS, TrialEvent
from .slots import LOG

DRIVER = "driver.json"
PACKAGES = ("pernn", "torch", "numpy")
"""What decides a trial's bits."""

NUM_LOOKS, LOOK_SECONDS = 10, 0.3


class JobFolder:
    """One driver's folder in the results directory.

    Args:
        root: Results directory.
        path: The folder; a new one if absent.

    Raises:
        StoreError: If it cannot be made.
    """

    def __init__(self, root: Path, path: Path | None = None) -> None:
        self.root = root.resolve()
        self.path = path or self.root / "jobs" / secrets.token_hex(8)
        self._read: dict[str, int] = {}
        self._count = 0
        if path is None:
            with storing(self.path):
                self.path.mkdir(parents=True)
            content = {"format": FORMAT, "versions": describe_code()}
            write_atomically(self.path / DRIVER, to_json(content))

    def order(self, specs: Sequence[RunSpec], device: str, threads: int) -> dict[str, Any]:
        """Put a new job for these trials into plain values."""
        self._count += 1
        return {
            "job": f"{self._count:06d}",
            "folder": str(self.path),
            "root": str(self.root),
            "specs": [spec.dump() for spec in specs],
            "runs": [spec.fingerprint() for spec in specs],
            "device": device,
            "threads": threads,
        }

    def news(self, job: str) -> list[TrialEvent]:
        """Give what was told of a job since this was last asked; half a line waits."""
        path = self.path / f"{job}.jsonl"
        if not path.exists():
            return []
        with storing(path), path.open("rb") as file:
            file.seek(self._read.get(job, 0))
            lines = file.read().split(b"\n")[:-1]
        self._read[job] = self._read.get(job, 0) + sum(len(line) + 1 for line in lines)
        return [TrialEvent(**json.loads(line)) for line in lines]

    def remove(self) -> None:
        """Delete the folder: nothing in it is needed once all jobs have ended."""
        shutil.rmtree(self.path, ignore_errors=True)


def describe_code() -> dict[str, str | None]:
    """Name the code that computes here."""
    commit = describe_commit()
    # Whether a checkout is changed may itself change while a sweep runs.
    return {**describe_versions(PACKAGES), "commit": commit and commit.removesuffix("-dirty")}


def check_machine(folder: Path) -> None:
    """Check that this machine sees what the driver wrote and runs the same code.

    Raises:
        MachineError: If it does not.
    """
    here = platform.node()
    for _ in range(NUM_LOOKS):
        if (folder / DRIVER).exists():
            break
        time.sleep(LOOK_SECONDS)
    else:
        raise MachineError(
            f"{here} does not see {folder}: the results directory must lie on a file system that "
            "all machines of the cluster share, under the same path"
        )
    theirs, ours = read_json(folder / DRIVER)["versions"], describe_code()
    for name, wanted in theirs.items():
        if ours.get(name) != wanted:
            raise MachineError(
                f"{here} has {name} {ours.get(name)} where the driver has {wanted}: install the "
                "same on all machines of the cluster"
            )


def carry(order: Mapping[str, Any], may_go_on: Callable[[], bool]) -> list[dict[str, Any]]:
    """Carry a job's trials to their ends, in turn, telling the driver in the job's file.

    Returns:
        The last event of each trial.

    Raises:
        MachineError: If this machine shares no directory with the driver or runs other code.
        StoreError: If nothing can be written there.
    """
    from pernn.training import keep_freed_memory

    from .worker import Worker

    keep_freed_memory()
    folder, root = Path(order["folder"]), Path(order["root"])
    check_machine(folder)
    ends: list[TrialEvent] = []
    path = folder / f"{order['job']}.jsonl"
    with (
        storing(path),
        path.open("a", buffering=1) as file,
        (root / LOG).open("a", buffering=1) as log,
        redirect_stderr(log),
    ):
        tell = Worker(file).tell
        for values, run in zip(order["specs"], order["runs"], strict=True):
            if may_go_on():
                ends.append(_carry_one(values, run, order, tell, may_go_on))
            else:
                ends.append(TrialEvent("stopped", run))
            tell(ends[-1])
    return [asdict(event) for event in ends]


def _carry_one(
    values: dict[str, Any],
    run: str,
    order: Mapping[str, Any],
    tell: Callable[[TrialEvent], None],
    may_go_on: Callable[[], bool],
) -> TrialEvent:
    # The driver, which imports this file too, has no use for torch.
    from pernn.training import keep_freed_memory

    from .inline import failure, run_one

    keep_freed_memory()
    try:
        spec = RunSpec.load(values)
    except ConfigError as error:
        # A part of another package that the driver has and this machine has not.
        return failure(run, error)
    root, device, threads = Path(order["root"]), order["device"], order["threads"]
    return run_one(spec, root, tell, device=device, threads=threads, may_go_on=may_go_on)


def ends_among(events: Sequence[TrialEvent]) -> list[TrialEvent]:
    """Give the last event of each trial; one that was taken up again counts by its newest."""
    last = {event.run: event for event in events if event.kind != "warning"}
    return [event for event in last.values() if event.kind in ENDS]
