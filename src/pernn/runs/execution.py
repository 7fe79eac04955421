"""Bring a run to its end: new, resumed or already finished."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from pernn.errors import TrialError
from pernn.store import RunDirectory
from pernn.training import Updated, advance, choose_device, computing

from .active import ActiveRun, check_device, kernels_of, read_start
from .environment import describe_environment
from .memory import check_memory
from .outcome import OnUpdate, Outcome
from .parts import changed_parts, describe_parts
from .spec import RunSpec
from .stages import read_divergence, wait_for


def execute(
    spec: RunSpec,
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    on_update: OnUpdate = lambda update: True,
    warn: Callable[[str], None] = warnings.warn,
    expired: Mapping[str, str] | None = None,
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
        expired: Run → name of its expired lease, as a `LeaseWatch` gives it. If given, another
            process's lease is not waited for, nor a pretraining that another process works on.

    Returns:
        How it ended.

    Raises:
        BusyError: If another process works on the run.
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
    check_memory(spec, chosen)
    first = spec.first_stage()
    if first is not None:

        def run_first() -> bool:
            outcome = execute(
                first,
                root,
                device=device,
                threads=threads,
                on_update=on_update,
                warn=warn,
                expired=expired,
            )
            return outcome.state == "finished"

        if not (run_first() if expired is not None else wait_for(run_first, lambda: on_update(0))):
            return Outcome("stopped", None)
    lease = None if expired is None else expired.get(directory.fingerprint, "")
    with directory.locked(lambda: on_update(0), lease):
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("finished", result, is_new=False)
        return _run_held(spec, directory, root, chosen, threads, on_update, warn)


def _run_held(
    spec: RunSpec,
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
    with kernels_of(started, directory):
        if first is not None and spec.analysis is not None:
            return _run_analysis(spec, first, directory, started, root, device, on_update)
        run = ActiveRun.begin(spec, directory, started, root, device, warn)
        with closing(run.log):
            lost = None if first is None else read_divergence(first, root)
            if lost is not None:
                return run.diverge(f"its pretraining diverged: {lost['reason']}")
            return train(run, device, on_update)


def _run_analysis(
    spec: RunSpec,
    first: RunSpec,
    directory: RunDirectory,
    started: Mapping[str, Any] | None,
    root: Path,
    device: torch.device,
    on_update: OnUpdate,
) -> Outcome:
    from .analysing import run_analysis

    if started is None:
        parts = describe_parts(spec)
        environment = describe_environment(device) | ({"parts": parts} if parts else {})
        directory.write_environment(environment)
    with computing("fp32", device):
        return run_analysis(spec, first, directory, root, device, on_update)


def train(run: ActiveRun, device: torch.device, on_update: OnUpdate) -> Outcome:
    """Train a run to its end, or until it may not go on.

    Args:
        run: The run.
        device: Where.
        on_update: Told the number of updates, those of earlier stages included; returns false to
            have the run stop there.
    """
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
