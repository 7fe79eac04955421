"""Estimates of trials' time and memory, from a few updates."""

import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
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
LONG_HOURS = 24.0
"""Work of more than this is begun only if somebody says so."""


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
        num_trials: Number of trials.
        num_to_come: Further ones, which are taken to be like these and count in time and disk.
    """

    hours: tuple[float, float] | None
    num_kinds: int
    num_measured: int
    disk: int
    memory: int
    free_disk: int
    free_memory: int
    num_trials: int = 0
    num_to_come: int = 0

    def describe(self) -> str:
        """Return the estimate as half a sentence."""
        if self.hours is None:
            return "nothing that could be measured"
        low, high = (show_time(3600 * hours) for hours in self.hours)
        span = low if low == high else f"{low} to {high.removeprefix('about ')}"
        is_part = self.num_measured < self.num_kinds
        some = f" ({self.num_measured} of {self.num_kinds} kinds measured)" if is_part else ""
        total = self.num_trials + self.num_to_come
        more = f" for at least {total} trials" if self.num_to_come else ""
        return (
            f"{span}{more}{some}, {decimal(self.disk)} of disk ({decimal(self.free_disk)} free), "
            f"{decimal(self.memory)} of memory ({decimal(self.free_memory)} free)"
        )

    @property
    def is_long(self) -> bool:
        """True if it is more than a day's work."""
        return self.hours is not None and self.hours[0] > LONG_HOURS

    def check(self) -> None:
        """Refuse what does not fit.

        Raises:
            MachineError: If disk or memory do not suffice.
        """
        for what, needed, free, advice in (
            ("disk", self.disk, self.free_disk, "choose another --results, free some"),
            ("memory", self.memory, self.free_memory, "use fewer --jobs"),
        ):
            if needed > free:
                raise MachineError(
                    f"needs about {decimal(needed)} of {what} and {decimal(free)} are free: "
                    f"{decimal(needed - free)} too little; {advice}, or try with --force"
                )


def estimate(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    jobs: int,
    threads: int,
    device: str,
    num_to_come: int = 0,
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
        num_to_come: How many more like them will follow, at least.

    Raises:
        MachineError: If the device is missing, or a trial cannot fit into the memory.
    """
    stages = {stage.fingerprint(): stage for spec in specs for stage in spec.stages}
    kinds = {run: _kind(stage) for run, stage in stages.items()}
    examples = {kinds[run]: stage for run, stage in stages.items()}
    # The smallest and the largest first: they tell the range of what there is no time for.
    ordered = sorted(examples, key=lambda kind: _size(examples[kind]))
    found: dict[str, tuple[list[float], int]] = {}
    until = time.monotonic() + ALL_SECONDS
    for turn in range(len(ordered)):
        kind = ordered.pop(-1 if turn % 2 else 0)
        try:
            found[kind] = measure(examples[kind], device, threads)
        except MachineError:
            raise
        except Exception:  # noqa: BLE001, S112 the trial itself will say what is wrong
            continue
        if time.monotonic() > until:
            break
    num_slots = min(jobs, len(stages))
    mine = {run: found[kind] for run, kind in kinds.items() if kind in found}
    # What a training keeps is what an analysis reads; one more is there while it is written.
    kept = [size * len(stages[run].analysed_updates) for run, (_, size) in mine.items()]
    writing = num_slots * max((size for _, size in mine.values()), default=0)
    place = next(one for one in (root.absolute(), *root.absolute().parents) if one.exists())
    done = {run: read_update(root, run) for run in stages}
    hours, all_in_all = _hours(stages, mine, done, num_slots), 1.0
    if specs:
        all_in_all += num_to_come / len(specs)
    return Estimate(
        hours=hours and (hours[0] * all_in_all, hours[1] * all_in_all),
        num_kinds=len(examples),
        num_measured=len(found),
        disk=round(sum(kept) * all_in_all) + writing,
        memory=num_slots * peak_memory(),
        free_disk=shutil.disk_usage(place).free,
        free_memory=measure_free_memory(),
        num_trials=len(specs),
        num_to_come=num_to_come,
    )


def _hours(
    stages: Mapping[str, RunSpec],
    mine: Mapping[str, tuple[Sequence[float], int]],
    done: Mapping[str, int],
    num_slots: int,
) -> tuple[float, float] | None:
    """Add up the quartiles of the updates' times; what was not measured may be like any other."""
    if not mine:
        return None
    quartiles = {run: np.quantile(taken, (0.25, 0.75)) for run, (taken, _) in mine.items()}
    lows, highs = np.array([*quartiles.values()]).T
    seconds = np.zeros(2)
    for run, spec in stages.items():
        is_trained = spec.analysis is None
        count = spec.training.iterations if is_trained else spec.num_analysed
        seconds += max(0, count - done[run]) * quartiles.get(
            run, np.array([lows.min(), highs.max()])
        )
    low, high = (seconds / num_slots / 3600).tolist()
    return low, high


def _kind(spec: RunSpec) -> str:
    """Name what decides the time of an update."""
    deciding = ("batch_size", "precision", "optimizer", "frozen_embedding")
    training = {name: getattr(spec.training, name) for name in deciding}
    shape = spec.dump() | {"training": training, "pretraining": None, "seed": 0}
    return json.dumps(shape, sort_keys=True)


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
    alone = spec.model_copy(update={"pretraining": None, "analysis": None})
    task = build_task(alone, chosen)
    check_memory(alone, task, chosen)
    if chosen.type == "cpu":
        # Where they must be compiled first, that is no update's time.
        find_kernels()
    moments = [now(chosen)]
    if spec.analysis is not None:
        with computing("fp32", chosen):
            list(analyse(spec, alone, Path(), [0], chosen))
        return [now(chosen) - moments[0]], 0
    trial = build(alone, chosen, task)
    state = TrainState.fresh(trial.model, trial.preset, spec.training.optimizer)
    with computing(spec.training.precision, chosen):
        for event in advance(state, trial.stream, spec.training, trial.preset, chosen):
            moments += [now(chosen)] if event.kind == "update" else []
            if len(moments) > MOST_UPDATES or moments[-1] - moments[0] > ENOUGH_SECONDS:
                break
    # The first update sets everything up; of a very slow one there are no others.
    taken = np.diff(moments[1:] if len(moments) > 2 else moments)
    return taken.tolist(), sum(array.nbytes for array in state.dump().values())
