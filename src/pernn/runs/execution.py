"""Carry a run to its end: new, resumed or already done."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pernn.errors import TrialError
from pernn.store import RunDirectory, registering
from pernn.training import Updated, advance_pack, choose_device, computing

from .environment import describe_environment
from .limits import check_memory
from .member import Member, check_device, kernels_of, read_start
from .outcome import Listener, Outcome
from .parts import changed_parts, describe_parts
from .spec import RunSpec
from .stages import wait_for


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
        TrialError: If the loss is no longer a number.
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
    with registering(root, directory.fingerprint), directory.locked(lambda: listener(0)):
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
            (outcome,) = carry([member], chosen, lambda _, update: listener(update))
    if isinstance(outcome, TrialError):
        raise outcome
    return outcome


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


def carry(
    members: Sequence[Member], device: torch.device, listener: Callable[[str, int], bool]
) -> list[Outcome | TrialError]:
    """Train runs side by side to their end, or until they may not go on.

    Args:
        members: One, or a pack: specs that differ in their seed, after equally many updates.
        device: Where.
        listener: Told run and update, those of earlier stages included; returns false to have all
            of them stop there.

    Returns:
        How each ended; the error of one whose loss is no longer a number.
    """
    spec, protocol = members[0].spec, members[0].trial.protocol
    before = spec.num_updates - spec.training.iterations
    ends: dict[int, Outcome | TrialError] = {}
    told, stopping = set[int](), False
    pack = [(member.state, member.trial.stream) for member in members]
    for member in members:
        # Those of a pack that goes one by one have waited for the others.
        member.begun = time.perf_counter()
    with computing(spec.training.precision, device):
        for number, event in advance_pack(pack, spec.training, protocol, device):
            member = members[number]
            try:
                if isinstance(event, TrialError):
                    raise event
                if number not in ends:
                    member.take(event)
            except TrialError as error:
                if number not in ends:
                    member.fail(error)
                    ends[number] = error
            if isinstance(event, Updated):
                told.add(number)
                name = member.directory.fingerprint
                stopping |= number not in ends and not listener(name, before + event.update)
            # All members have made this update before any of them is left.
            if told | ends.keys() == set(range(len(members))):
                told.clear()
                if stopping:
                    break
        for number, member in enumerate(members):
            if number not in ends:
                ends[number] = _end(member, device, stopping=stopping)
    return [ends[number] for number in range(len(members))]


def _end(member: Member, device: torch.device, *, stopping: bool) -> Outcome | TrialError:
    try:
        return member.stop() if stopping else member.finish(device)
    except TrialError as error:
        member.fail(error)
        return error
