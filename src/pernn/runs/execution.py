"""Carry a run to its end: new, resumed or already done."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from pernn.errors import TrialError
from pernn.store import RunDirectory
from pernn.training import Updated, advance, choose_device, computing

from .environment import describe_environment
from .limits import check_memory
from .member import Member, check_device, kernels_of, read_start
from .outcome import Listener, Outcome
from .parts import changed_parts, describe_parts
from .spec import RunSpec
from .stages import read_divergence, wait_for


def execute(
    spec: RunSpec,
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    listener: Listener = lambda update: True,
    warn: Callable[[str], None] = warnings.warn,
) -> Outcome:
    """Carry a run to its end from wherever it stands.

    The same spec gives the same bits on the same machine, whatever was killed in between. A run
    goes on with the threads and on the kind of device that it began with.

    Args:
        spec: What to run.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run; their number can change the last bits.
        listener: Hears of progress and may stop the run.
        warn: Told in one line what was wrong but could be mended.

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
        return Outcome("already done", result)
    chosen = choose_device(device)
    check_memory(spec, chosen)
    first = spec.first_stage()
    if first is not None:

        def carry_first() -> bool:
            outcome = execute(
                first, root, device=device, threads=threads, listener=listener, warn=warn
            )
            return outcome.status != "stopped"

        if not wait_for(carry_first, lambda: listener(0)):
            return Outcome("stopped", None)
    with directory.locked(lambda: listener(0)):
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("already done", result)
        directory.write_spec(spec.dump())
        started = read_start(directory)
        torch.set_num_threads(threads if started is None else started["threads"])
        if started is not None:
            check_device(started, chosen, directory)
        with kernels_of(started, directory):
            if first is not None and spec.analysis is not None:
                return _carry_analysis(spec, first, directory, started, root, chosen, listener)
            member = Member.begin(spec, directory, started, root, chosen, warn)
            lost = None if first is None else read_divergence(first, root)
            if lost is not None:
                return member.diverge(f"its pretraining diverged: {lost['reason']}")
            return carry(member, chosen, listener)


def _carry_analysis(
    spec: RunSpec,
    first: RunSpec,
    directory: RunDirectory,
    started: Mapping[str, Any] | None,
    root: Path,
    device: torch.device,
    listener: Listener,
) -> Outcome:
    from .analysing import carry_analysis

    if started is None:
        parts = describe_parts(spec)
        environment = describe_environment(device) | ({"parts": parts} if parts else {})
        directory.write_environment(environment)
    with computing("fp32", device):
        return carry_analysis(spec, first, directory, root, device, listener)


def carry(member: Member, device: torch.device, listener: Listener) -> Outcome:
    """Train a run to its end, or until it may not go on.

    Args:
        member: The run.
        device: Where.
        listener: Told the number of updates, those of earlier stages included; returns false to
            have the run stop there.
    """
    spec, trial = member.spec, member.trial
    before = spec.num_updates - spec.training.iterations
    with computing(spec.training.precision, device):
        try:
            for event in advance(member.state, trial.stream, spec.training, trial.preset, device):
                member.take(event)
                if isinstance(event, Updated) and not listener(before + event.update):
                    return member.stop()
            return member.finish(device)
        except TrialError as error:
            return member.diverge(str(error))
