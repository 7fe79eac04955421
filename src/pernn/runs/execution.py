"""Bring a run to its end: new, resumed or already finished."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from pernn.errors import MachineError, TrialError
from pernn.interfaces import Task
from pernn.store import RunDirectory, physical_memory
from pernn.training import Updated, advance, choose_device, computing

from .active import (
    ActiveRun,
    OnUpdate,
    Outcome,
    check_device,
    describe_start,
    kernels_of,
    read_start,
    updates_of,
)
from .assembly import build_task, read_divergence
from .environment import changed_parts
from .spec import RunSpec

WORD, INDEX = 4, 8
"""Bytes of a number and of an id."""


class TooLargeError(MachineError):
    """A trial needs more memory than this machine has."""


def execute(
    spec: RunSpec,
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    on_update: OnUpdate = lambda update: True,
    warn: Callable[[str], None] = warnings.warn,
    expired: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Bring a run to its end from wherever it stands: new, half-finished or finished.

    The same spec gives the same bits on the same machine, whatever was killed in between. A run
    goes on with the threads and on the kind of device that it began with.

    Args:
        spec: What to run.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run; their number can change the last bits.
        on_update: Called with the number of updates done; returns false to stop the run there.
        warn: Told in one line what was wrong but could be mended.
        expired: Run → name of its expired lease, as a `LeaseWatch` gives it, to be taken over.

    Returns:
        How it ended.

    Raises:
        BusyError: If another process works on the run, or on an earlier stage of it.
        MachineError: If the device is missing, or the trial cannot fit into the memory.
        StoreError: If the directory cannot be read or written.
    """
    directory = RunDirectory(root, spec.fingerprint())
    for change in changed_parts({directory.fingerprint: spec}, root):
        warn(change)
    result = directory.read_result()
    if result is not None:
        return Outcome("finished", result, is_new=False)
    chosen = choose_device(device)
    task = build_task(spec, chosen, warn)
    check_memory(spec, task, chosen)
    first = spec.first_stage()
    if first is not None:
        where: dict[str, Any] = {"device": device, "threads": threads, "expired": expired}
        if execute(first, root, on_update=on_update, warn=warn, **where).state == "stopped":
            return Outcome("stopped", None)
    with directory.locked(expired.get(directory.fingerprint, "")):
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("finished", result, is_new=False)
        return _run_held(spec, task, directory, root, chosen, threads, on_update, warn)


def least_bytes(spec: RunSpec, task: Task, device: torch.device) -> int:
    """Return bytes of memory that a trial cannot do without, a lower bound.

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
    """Refuse a trial that needs more than there is, before any of it is allocated."""
    needed, there = least_bytes(spec, task, device), physical_memory()
    if needed > there:
        raise TooLargeError(
            f"{spec.label} needs at least {needed / 2**30:,.1f} GiB of memory, this machine has "
            f"{there / 2**30:,.1f}: choose smaller sizes"
        )


def _run_held(
    spec: RunSpec,
    task: Task,
    directory: RunDirectory,
    root: Path,
    device: torch.device,
    threads: int,
    on_update: OnUpdate,
    warn: Callable[[str], None],
) -> Outcome:
    """Begin or go on with a run that this process holds; its earlier stages are finished."""
    directory.write_spec(spec.dump())
    started, first = read_start(directory), spec.first_stage()
    torch.set_num_threads(threads if started is None else started["threads"])
    if started is not None:
        check_device(started, device, directory)
    with kernels_of(started, directory), updates_of(started):
        if first is not None and spec.analysis is not None:
            if started is None:
                directory.write_environment(describe_start(spec, device))
            from .analysing import run_analysis

            with computing("fp32", device):
                return run_analysis(spec, first, directory, root, device, on_update)
        run = ActiveRun.begin(spec, task, directory, started, root, device, warn)
        with closing(run.log):
            lost = None if first is None else read_divergence(first, root)
            if lost is not None:
                return run.diverge(f"its pretraining diverged: {lost['reason']}")
            return train(run, device, on_update)


def train(run: ActiveRun, device: torch.device, on_update: OnUpdate) -> Outcome:
    """Train a run to its end, or until it may not go on."""
    spec, trial = run.spec, run.trial
    before = spec.num_updates - spec.training.iterations
    with computing(spec.training.precision, device):
        try:
            for event in advance(run.state, trial.stream, spec.training, trial.preset, device):
                run.take(event)
                if isinstance(event, Updated) and not on_update(before + event.update):
                    return run.stop()
            return run.finish(device)
        except TrialError as error:
            return run.diverge(str(error))
