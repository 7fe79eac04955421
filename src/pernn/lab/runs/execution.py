"""Bring a run to its end: new, resumed or already finished."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch

from pernn.errors import CorruptError, MachineError, StoreError, TrialError
from pernn.kernels import describe_kernels, find_kernels, whole_updates, without_kernels
from pernn.lab.interfaces import Task
from pernn.lab.store import RunDirectory, physical_memory
from pernn.lab.training import choose_device, computing

from .analysis import AnalysisRun
from .building import build_task
from .environment import changed_parts, describe_start
from .spec import RunSpec
from .stages import Stage, TrainingRun

WORD, INDEX = 4, 8
"""Bytes of a number and of an id."""

OnUpdate = Callable[[int], bool]
"""Called with the number of updates done after each, those of earlier stages included; returns
false to have the run stop there."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of an execution.

    Attributes:
        state: `finished`, or `stopped` with a checkpoint.
        result: The content of `result.json`; `None` if stopped.
        is_new: Whether this execution did something; false if the run was finished before.
    """

    state: Literal["finished", "stopped"]
    result: Mapping[str, Any] | None
    is_new: bool = True


def execute(
    spec: RunSpec,
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    on_update: OnUpdate = lambda update: True,
    on_warning: Callable[[str], None] = warnings.warn,
    expired: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Run a trial to its end, from wherever it stands.

    The same spec gives the same bits on the same machine, whatever was killed in between. A run
    goes on with the threads and on the kind of device that it began with.

    Args:
        spec: What to run.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run; their number can change the last bits.
        on_update: Called with the number of updates done; returns false to stop the run there.
        on_warning: Called with a line about what was wrong but could be mended.
        expired: Run → name of its expired lease, as a `LeaseWatch` gives it, to be taken over.

    Returns:
        How it ended.

    Raises:
        BusyError: If another process works on the run, or on an earlier stage of it.
        MachineError: If the device is missing, or the trial cannot fit into the memory.
        StoreError: If the directory cannot be read or written.
    """
    directory = RunDirectory(root, spec.fingerprint())
    result = directory.read_result()
    if result is not None:
        for change in changed_parts({directory.fingerprint: spec}, root):
            on_warning(change)
        return Outcome("finished", result, is_new=False)
    chosen = choose_device(device)
    task = build_task(spec, chosen)
    check_memory(spec, task, chosen)
    first = spec.first_stage()
    if first is not None:
        how: dict[str, Any] = {"device": device, "threads": threads, "expired": expired}
        how |= {"on_update": on_update, "on_warning": on_warning}
        if execute(first, root, **how).state == "stopped":
            return Outcome("stopped", None)
    with directory.locked(expired.get(directory.fingerprint, "")):
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("finished", result, is_new=False)
        directory.write_spec(spec.dump())
        started = read_start(directory)
        torch.set_num_threads(threads if started is None else started["threads"])
        with _as_begun(started, directory, chosen):
            stage = AnalysisRun if spec.analysis else TrainingRun
            run = stage(spec, task, directory, root, chosen, on_warning)
            _restore(run, started)
            with closing(run):
                return _carry_on(run, on_update)


def _carry_on(run: Stage, on_update: OnUpdate) -> Outcome:
    """Go through the updates of a run that is restored, and write its result."""
    directory, before = run.directory, run.spec.num_updates - run.num_updates
    begun, resumed = time.perf_counter(), run.update
    with computing(run.precision, run.device):
        try:
            for update in run.updates():
                if not on_update(before + update):
                    run.save()
                    directory.note("stopped", update=run.update)
                    return Outcome("stopped", None)
            result, event = run.finish(), "finished"
        except TrialError as error:
            result, event = run.diverge(str(error)), "diverged"
            run.on_warning(f"diverged after update {run.update} and counts as the worst: {error}")
    seconds, count = time.perf_counter() - begun, run.update - resumed
    # A kill may have come between the last checkpoint and this, and nobody comes here again.
    directory.checkpoints.prune(run.spec.training.keep_interval)
    directory.write_result(result)
    details = {"updates": count, "seconds": seconds} if event == "finished" else result["diverged"]
    directory.note(event, **{"update": run.update, **details})
    return Outcome("finished", result)


def _restore(run: Stage, started: Mapping[str, Any] | None) -> None:
    """Go back to what a run has saved, or to the beginning; write down what it runs on."""
    directory = run.directory
    environment = describe_start(run.spec, run.device) | run.environment()
    if started is not None:
        before, data = (values.get("data_sha256") for values in (started, environment))
        if before != data:
            raise StoreError(
                f"{directory.path}: this run began on data with SHA-256 {before}, now it is "
                f"{data}: bring the old data back, or delete the directory to begin again"
            )
    run.restore()
    if run.update or directory.read_metrics():
        for change in changed_parts({directory.fingerprint: run.spec}, run.root):
            run.on_warning(change)
    else:
        # Only the date of an earlier start is kept: no restart may make a plan the older one.
        date = environment["date"] if started is None else started.get("date", "")
        directory.write_environment({**environment, "date": date})
    changed = {
        key: [started.get(key), value]
        for key, value in environment.items()
        if started is not None and key != "date" and started.get(key) != value
    }
    event = "started" if started is None else "resumed"
    directory.note(event, update=run.update, **({"changed": changed} if changed else {}))


def read_start(directory: RunDirectory) -> Mapping[str, Any] | None:
    """Read a run's environment, or `None` if it never began."""
    started = directory.read_environment()
    if started is None and not directory.checkpoints.updates():
        return None
    if started is None or not {"device", "threads"} <= started.keys():
        raise CorruptError(
            f"{directory.path / 'environment.json'} does not say device and threads: restore it, "
            "or delete the run directory to begin again"
        )
    return started


@contextmanager
def _as_begun(
    started: Mapping[str, Any] | None, directory: RunDirectory, device: torch.device
) -> Iterator[None]:
    """Compute as the run began, whose sums are ordered so; refuse where that cannot be had."""
    if started is None:
        yield
        return
    before = started["device"].partition(":")[0]
    if before != device.type:
        raise MachineError(
            f"{directory.path}: this run began on {before} and would not end in the same bits on "
            f"{device.type}: resume with --device {before}, or delete the directory"
        )
    kernels = str(started.get("kernels", ""))
    if kernels and not kernels.startswith("torch") and find_kernels() is None:
        raise MachineError(
            f"{directory.path}: this run began with compiled kernels, and here it is "
            f"{describe_kernels()}: `pernn doctor` says what is missing; or delete the directory"
        )
    arithmetic = without_kernels() if kernels.startswith("torch") else nullcontext()
    with whole_updates(enabled=started.get("updates") == "whole"), arithmetic:
        yield


def least_bytes(spec: RunSpec, task: Task, device: torch.device) -> int:
    """Return a lower bound of a trial's memory in bytes.

    Counted are weights with both of Adam's moments (a checkpoint holds them all), ids of one batch
    and of the held-out sequences, and on the CPU the hidden states of one batch or piece.
    """
    core, training = spec.core, spec.training
    hidden = core.hidden_size
    recurrent = core.num_layers * hidden * hidden
    weights = task.vocab_size * (spec.embedding_size + hidden) + recurrent
    held_out = getattr(spec.task, "num_held_out", 0)
    ids = (training.batch_size + held_out) * task.num_steps
    piece = training.micro_batch or training.batch_size
    states = piece * task.num_steps * hidden if device.type == "cpu" else 0
    return WORD * (3 * weights + states) + INDEX * ids


def check_memory(spec: RunSpec, task: Task, device: torch.device) -> None:
    """Refuse a trial that needs more memory than there is."""
    needed, there = least_bytes(spec, task, device), physical_memory()
    if needed > there:
        raise MachineError(
            f"{spec.label} needs at least {needed / 2**30:,.1f} GiB of memory, this machine has "
            f"{there / 2**30:,.1f}: choose smaller sizes"
        )
