"""What trials on other machines need: the same directory, the same code, and files that tell.

    results/drivers/<driver>/driver.json     what code the driver runs: a machine compares its own

A machine gets plain values, and its trials write into the results directory themselves.
"""

import platform
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, MachineError
from pernn.runs import RunSpec, describe_commit, describe_versions
from pernn.store import (
    FORMAT,
    LeaseWatch,
    RunDirectory,
    is_done,
    read_json,
    read_update,
    refuse_links,
    storing,
    to_json,
    write_atomically,
)

from .runner import OnEvent, TrialEvent, run_order
from .worker import LOG

DRIVER = "driver.json"
PACKAGES = ("pernn", "torch", "numpy")
"""What decides a trial's bits."""
NUM_LOOKS, LOOK_SECONDS = 10, 0.3
MAX_WATCHED = 50
"""Trials whose files are read at a time."""
MENDED = ("damaged checkpoint set aside", "metrics restored", "diverged")
"""Lines of a journal that are worth a warning."""


class DriverFolder:
    """One driver's folder in the results directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.path = self.root / "drivers" / secrets.token_hex(8)
        refuse_links(self.path.parent)
        with storing(self.path):
            self.path.mkdir(parents=True)
        content = {"format": FORMAT, "versions": describe_code()}
        write_atomically(self.path / DRIVER, to_json(content))

    def remove(self) -> None:
        """Delete the folder: nothing in it is needed once no trial runs."""
        shutil.rmtree(self.path, ignore_errors=True)


def describe_code() -> dict[str, str | None]:
    """Name the code that computes here."""
    commit = describe_commit()
    # Whether a checkout is changed may itself change while a sweep runs.
    return {**describe_versions(PACKAGES), "commit": commit and commit.removesuffix("-dirty")}


def check_machine(folder: Path) -> None:
    """Check that this machine sees what the driver wrote and runs the same code."""
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


def run_orders(
    folder: str, orders: Sequence[Mapping[str, Any]], may_go_on: Callable[[], bool]
) -> list[TrialEvent]:
    """Run trials on a machine of a cluster, in turn; what goes wrong is logged in the directory.

    Returns:
        How each trial ended; those that were not begun are left out.
    """
    # The driver, which imports this file too, has no use for torch.
    from pernn.training import keep_freed_memory

    keep_freed_memory()
    check_machine(Path(folder))
    log = Path(folder).parents[1] / LOG
    with storing(log), log.open("a", buffering=1) as file, redirect_stderr(file):
        return [run_order(order, lambda event: None, may_go_on) for order in orders if may_go_on()]


class JournalWatch:
    """Tells from the files of running trials how they get on."""

    def __init__(self, root: Path, on_event: OnEvent) -> None:
        self.root, self.on_event = root, on_event
        self._leases = LeaseWatch()
        self._lines: dict[str, int] = {}
        """Run → number of lines in its journal before this attempt."""
        self._updates: dict[str, int] = {}
        self._warned: dict[str, int] = {}
        self._next = 0

    def begin(self, run: str) -> None:
        """Remember how long the journal of a trial is that is about to be started."""
        self._lines[run] = self._warned[run] = len(RunDirectory(self.root, run).read_journal())
        self._updates.pop(run, None)

    def look(self, running: Mapping[str, RunSpec]) -> None:
        """Read the files of running trials, of some at a time if there are many."""
        runs = list(running)
        first, self._next = self._next % max(1, len(runs)), self._next + MAX_WATCHED
        for run in (runs[first:] + runs[:first])[:MAX_WATCHED]:
            self._look_at(run, running[run])

    def _look_at(self, run: str, spec: RunSpec) -> None:
        done = sum(read_update(self.root, stage.fingerprint()) for stage in spec.stages)
        update = min(done, spec.num_updates)
        lines = RunDirectory(self.root, run).read_journal()
        for line in lines[self._warned[run] :]:
            if line.get("event") in MENDED:
                message = f"{line['event']}: {line.get('reason', '')}"
                self.on_event(TrialEvent("running", run, update, message))
        self._warned[run] = len(lines)
        begun = len(lines) > self._lines[run]
        if (begun or update) and self._updates.get(run) != update:
            if run not in self._updates:
                self.on_event(TrialEvent("running", run))
            self._updates[run] = update
            if update:
                self.on_event(TrialEvent("running", run, update))

    def find_end(self, spec: RunSpec) -> TrialEvent | None:
        """Return how an attempt that is over ended; `None` if its files do not tell."""
        run = spec.fingerprint()
        directory = RunDirectory(self.root, run)
        lines = directory.read_journal()[self._lines[run] :]
        event, update = ([str(line.get("event")) for line in lines] or [""]), spec.num_updates
        if is_done(self.root, run):
            is_ours = {"finished", "diverged"} & {*event}
            return TrialEvent("finished", run, update, elsewhere=not is_ours)
        if event[-1] == "failed":
            message, error = (str(lines[-1].get(key, "")) for key in ("reason", "error"))
            return TrialEvent("failed", run, message=message, error=error)
        if event[-1] == "stopped":
            return TrialEvent("stopped", run, read_update(self.root, run))
        holder, _ = self._leases.look(directory.path)
        message = f"{holder} is working on this run"
        return TrialEvent("running", run, message=message, elsewhere=True) if holder else None


def device_of_trial(device: str, gpus: float) -> str:
    """Return the device of a trial that gets that many GPUs."""
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(
            f"--device is invalid: expected auto, cpu or cuda, as the cluster chooses the GPU, got "
            f"{device}"
        )
    if device == "cuda" and not gpus:
        raise ConfigError("--device cuda on a cluster needs --gpus-per-trial")
    if device == "cpu" and gpus:
        raise ConfigError(f"--device cpu is incompatible with --gpus-per-trial {gpus:g}")
    return "cuda" if gpus else "cpu"
