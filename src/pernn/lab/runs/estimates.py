"""Estimates of trials' time and memory, from a few updates."""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.filesize import decimal

from pernn.errors import MachineError, show_time
from pernn.lab.config import flatten
from pernn.lab.store import read_update

from .environment import measure_free_memory, peak_memory
from .spec import RunSpec

ALL_SECONDS = 30.0
"""No further kind is begun after this time; the others tell the range."""
ENOUGH_SECONDS, MOST_UPDATES = 1.0, 60
"""Of one kind; its first update, which sets everything up, does not count."""
ADVICE = {"disk": "choose another --results, free some", "memory": "use fewer --jobs"}
DECIDING = "batch_size", "precision", "optimizer", "frozen_embedding"
"""Options of training that decide the time of an update."""


@dataclass(frozen=True)
class Estimate:
    """Time, disk and memory: needed and free.

    Attributes:
        hours: Least and most, all of them together; `None` if nothing could be measured.
        num_kinds: Number of kinds of trials.
        num_measured: Those that were measured.
        disk: Bytes of all checkpoints when they are done, and of those being written.
        memory: Bytes of those that run at a time.
        free_disk: Bytes that are free where results go.
        free_memory: Bytes that are free for this process and its children.
        at_least: Number of trials, if further ones are to come, which count in time and disk.
    """

    hours: tuple[float, float] | None
    num_kinds: int
    num_measured: int
    disk: int
    memory: int
    free_disk: int
    free_memory: int
    at_least: int | None = None

    def describe(self) -> str:
        """Return the estimate as half a sentence."""
        if self.hours is None:
            return "nothing that could be measured"
        low, high = (show_time(3600 * hours) for hours in self.hours)
        span = low if low == high else f"{low} to {high.removeprefix('about ')}"
        is_part = self.num_measured < self.num_kinds
        some = f" ({self.num_measured} of {self.num_kinds} kinds measured)" if is_part else ""
        more = f" for at least {self.at_least} trials" if self.at_least else ""
        return (
            f"{span}{more}{some}, {decimal(self.disk)} of disk ({decimal(self.free_disk)} free), "
            f"{decimal(self.memory)} of memory ({decimal(self.free_memory)} free)"
        )

    def check(self) -> None:
        """Refuse what does not fit.

        Raises:
            MachineError: If disk or memory do not suffice.
        """
        for what, advice in ADVICE.items():
            needed, free = getattr(self, what), getattr(self, f"free_{what}")
            if needed > free:
                raise MachineError(
                    f"needs about {decimal(needed)} of {what} and {decimal(free)} are free: "
                    f"{decimal(needed - free)} too little; {advice}, or try with --force"
                )


def estimate(
    specs: Sequence[RunSpec], root: Path, *, jobs: int, threads: int, device: str, to_come: int = 0
) -> Estimate:
    """Estimate what trials will take on this machine.

    Trials that run beside each other may take longer than one that is measured alone, above all on
    one GPU.

    Args:
        specs: What is still to do.
        root: Results directory, which may not exist yet.
        jobs: Trials at a time.
        threads: CPU threads of each.
        device: As for `execute`.
        to_come: How many more like them will follow, at least.

    Raises:
        MachineError: If the device is missing, or a trial cannot fit into the memory.
    """
    stages = {stage.fingerprint(): stage for spec in specs for stage in spec.stages}
    kinds = {run: _kind(stage) for run, stage in stages.items()}
    examples = {kinds[run]: stage for run, stage in stages.items()}
    # The smallest and the largest first: they tell the range of what there is no time for.
    left = sorted(examples, key=lambda kind: _size(examples[kind]), reverse=True)
    found: dict[str, np.ndarray] = {}
    until = time.monotonic() + ALL_SECONDS
    while left and (not found or time.monotonic() <= until):
        kind = left.pop()
        left.reverse()
        try:
            taken, size = measure(examples[kind], device, threads)
        except MachineError:
            raise
        except Exception:  # noqa: BLE001, S112 the trial itself will say what is wrong
            continue
        found[kind] = np.array([*np.quantile(taken, (0.25, 0.75)), size])
    lows, highs, sizes = np.array([*found.values()] or [np.zeros(3)]).T
    # What was not measured may be like any other.
    unknown, total = np.array([lows.min(), highs.max(), 0]), np.zeros(3)
    for run, stage in stages.items():
        undone = max(0, stage.num_own_updates - read_update(root, run))
        # What a training keeps is what an analysis reads.
        total += found.get(kinds[run], unknown) * (undone, undone, len(stage.analysed_updates))
    low, high, kept = (total * (1 + to_come / max(1, len(specs)))).tolist()
    num_slots = min(jobs, len(stages))
    place = next(one for one in (root.absolute(), *root.absolute().parents) if one.exists())
    return Estimate(
        hours=(low / num_slots / 3600, high / num_slots / 3600) if found else None,
        num_kinds=len(examples),
        num_measured=len(found),
        # One more of each that runs is there while it is written.
        disk=round(kept + num_slots * sizes.max()),
        memory=num_slots * peak_memory(),
        free_disk=shutil.disk_usage(place).free,
        free_memory=measure_free_memory(),
        at_least=len(specs) + to_come if to_come else None,
    )


def _kind(spec: RunSpec) -> str:
    """Name what decides the time of an update."""
    training = {name: getattr(spec.training, name) for name in DECIDING}
    return str(spec.dump() | {"training": training, "pretraining": None, "seed": 0})


def _size(spec: RunSpec) -> float:
    """Multiply all numbers of a spec: it only tells which kinds are likely to be the extremes."""
    numbers = (one for one in flatten(spec.dump()).values() if isinstance(one, int | float))
    return math.fsum(math.log1p(abs(one)) for one in numbers)


def measure(spec: RunSpec, device: str, threads: int) -> tuple[list[float], int]:
    """Return seconds of a stage's updates, and bytes of a checkpoint."""
    import torch

    from pernn.kernels import find_kernels
    from pernn.lab.training import TrainState, advance, choose_device, computing, now

    from .analysis import analyse
    from .building import build, build_task
    from .execution import check_memory

    chosen = choose_device(device)
    torch.set_num_threads(threads)
    alone = spec.model_copy(update={"pretraining": None})
    task = build_task(alone, chosen)
    check_memory(alone, task, chosen)
    if chosen.type == "cpu":
        # Where they must be compiled first, that is no update's time.
        find_kernels()
    moments = [now(chosen)]
    if spec.analysis is not None:
        with computing("fp32", chosen):
            list(analyse(alone, Path(), {0: ()}, chosen))
        return [now(chosen) - moments[0]], 0
    trial = build(alone, chosen, task)
    state = TrainState.fresh(trial.model, trial.preset, spec.training.optimizer)
    with computing(spec.training.precision, chosen):
        for event in advance(state, trial.stream, spec.training, trial.preset, chosen):
            moments += [now(chosen)] * (event.kind == "update")
            if len(moments) > MOST_UPDATES or moments[-1] - moments[0] > ENOUGH_SECONDS:
                break
    # The first update sets everything up; of a very slow one there are no others.
    taken = np.diff(moments[1:] if len(moments) > 2 else moments)
    return taken.tolist(), sum(array.nbytes for array in state.dump().values())
