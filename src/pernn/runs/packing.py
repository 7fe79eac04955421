"""Runs of one configuration side by side, where that is faster than one after the other."""

import copy
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from pernn.errors import ConfigError, PernnError
from pernn.store import RunDirectory
from pernn.training import choose_device, computing, make_update

from .execution import carry
from .limits import check_memory
from .member import Member, check_device, kernels_of, read_start
from .outcome import Outcome
from .spec import RunSpec

NUM_TRIES = 3
LEAST_GAIN = 1.1
"""How many times faster a pack must be than its members one after the other."""

Start = tuple[int, str, int]
"""What runs must have in common to go on together: threads, kernels, updates done."""

Told = Callable[[str, int], bool]
"""Told a run and its number of updates after each; returns false to have all runs stop there."""


def execute_pack(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    listener: Told = lambda run, update: True,
    warn: Callable[[str, str], None] = lambda run, message: warnings.warn(message, stacklevel=2),
) -> list[Outcome | PernnError]:
    """Carry runs that differ in their seed to their end from wherever they stand.

    Those that stand at the same update go side by side if a short trial of both ways, on copies,
    says that this is faster here; else one after the other. On a CPU each ends in the bits that
    `execute` gives it; on a GPU sums may be ordered differently.

    Args:
        specs: What to run; with equal `RunSpec.pack_key()`.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run.
        listener: Hears of progress and may stop all runs.
        warn: Told, of a run, in one line what was wrong but could be mended.

    Returns:
        How each ended: an outcome, or the error that ended it.

    Raises:
        ConfigError: If they cannot be a pack.
    """
    chosen = choose_device(device)
    ends: dict[str, Outcome | PernnError] = {}
    groups: dict[Start, list[Member]] = defaultdict(list)
    keys = {spec.pack_key() for spec in specs}
    if len(keys) > 1 or None in keys:
        raise ConfigError(
            "a pack needs specs without earlier stages that differ in their seed only"
        )
    with ExitStack() as held:
        for spec in specs:
            directory = RunDirectory(root, spec.fingerprint())
            try:
                check_memory(spec, chosen)
                begun = _begin(spec, directory, root, chosen, threads, held, warn)
            except PernnError as error:
                ends[directory.fingerprint] = error
                continue
            if isinstance(begun, Outcome):
                ends[directory.fingerprint] = begun
            else:
                start, member = begun
                groups[start].append(member)
        stopped = False
        for (num_threads, *_), members in groups.items():
            torch.set_num_threads(num_threads)
            with kernels_of(members[0].directory.read_environment(), members[0].directory):
                together = len(members) > 1 and gain(members, chosen) >= LEAST_GAIN
                for pack in [members] if together else [[member] for member in members]:
                    if stopped:
                        found: Sequence[Outcome | PernnError] = [one.stop() for one in pack]
                    else:
                        found = carry(pack, chosen, listener)
                    stopped |= any(isinstance(e, Outcome) and e.status == "stopped" for e in found)
                    for member, end in zip(pack, found, strict=True):
                        ends[member.directory.fingerprint] = end
    return [ends[spec.fingerprint()] for spec in specs]


def _begin(
    spec: RunSpec,
    directory: RunDirectory,
    root: Path,
    device: torch.device,
    threads: int,
    held: ExitStack,
    warn: Callable[[str, str], None],
) -> tuple[Start, Member] | Outcome:
    """Take a run up, unless it is done."""
    result = directory.read_result()
    if result is not None:
        return Outcome("already done", result)
    with ExitStack() as holding:
        holding.enter_context(directory.locked())
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("already done", result)
        directory.write_spec(spec.dump())
        started = read_start(directory)
        if started is not None:
            check_device(started, device, directory)
        run = directory.fingerprint
        with kernels_of(started, directory):
            member = Member.begin(spec, directory, started, root, device, lambda m: warn(run, m))
        held.enter_context(holding.pop_all())
    kernels = str((directory.read_environment() or {}).get("kernels"))
    num_threads = threads if started is None else int(started["threads"])
    return (num_threads, kernels, member.state.update), member


def gain(members: Sequence[Member], device: torch.device) -> float:
    """Measure how many times faster an update of a pack is than those of its members in turn.

    Copies are updated; the members stay as they are.
    """
    spec, protocol = members[0].spec, members[0].trial.protocol
    size = spec.training.batch_size
    batches = [one.trial.stream.train(one.state.update, size) for one in members]
    packs = ([copy.deepcopy(m.state) for m in members], [copy.deepcopy(m.state) for m in members])
    with computing(spec.training.precision, device):
        together = make_update(packs[0], spec.training, protocol, device)
        alone = [make_update([state], spec.training, protocol, device) for state in packs[1]]
        times: dict[bool, list[float]] = {True: [], False: []}

        def one_by_one() -> None:
            for update, batch in zip(alone, batches, strict=True):
                update([batch])

        for _ in range(1 + NUM_TRIES):
            times[True].append(_seconds(lambda: together(batches), device))
            times[False].append(_seconds(one_by_one, device))
    # The first of each sets everything up.
    return min(times[False][1:]) / min(times[True][1:])


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begun = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun
