"""How long trials will take: a few updates of each kind are made, and multiplied."""

import json
import statistics
from collections.abc import Callable, Sequence

import torch

from pernn.runs import RunSpec, build
from pernn.training import TrainState, computing, make_update

from .ceilings import now

NUM_UPDATES = 3
ENOUGH_SECONDS = 5.0


def time_update(spec: RunSpec, device: torch.device) -> float:
    """Run a few updates of a trial and return the median of their seconds.

    Earlier stages are left out: the weights are those of the beginning.
    """
    alone = spec.model_copy(update={"pretraining": None, "analysis": None})
    trial = build(alone, device)
    state = TrainState.fresh(trial.model, trial.preset)
    update = make_update(state, spec.training, trial.preset, device)
    times: list[float] = []
    with computing(spec.training.precision, device):
        begun = now(device)
        while len(times) <= NUM_UPDATES:
            start = now(device)
            update(trial.stream.train(state.update, spec.training.batch_size))
            times.append(now(device) - start)
            if times[1:] and now(device) - begun > ENOUGH_SECONDS:
                break
    # The first update sets everything up.
    return statistics.median(times[1:] or times)


def kinds_of_updates(specs: Sequence[RunSpec]) -> dict[str, tuple[RunSpec, int]]:
    """Sort the updates of all stages by what decides their time, and count them."""
    found: dict[str, tuple[RunSpec, int]] = {}
    seen: set[str] = set()
    for spec in specs:
        stage: RunSpec | None = spec
        while stage is not None:
            if stage.analysis is None and stage.fingerprint() not in seen:
                seen.add(stage.fingerprint())
                training = stage.training
                what = {"batch_size": training.batch_size, "precision": training.precision}
                content = stage.dump() | {"training": what, "seed": 0}
                key = json.dumps(content, sort_keys=True)
                count = found[key][1] if key in found else 0
                found[key] = stage, count + stage.training.iterations
            stage = stage.first_stage()
    return found


def measure_seconds(
    specs: Sequence[RunSpec], device: torch.device, hear: Callable[[int, int], None]
) -> float:
    """Return the seconds that all updates of some trials take, one after another.

    Args:
        specs: The trials; what they share is counted once.
        device: Where.
        hear: Told how many kinds of updates have been timed, and how many there are.
    """
    kinds = kinds_of_updates(specs)
    total = 0.0
    for done, (spec, count) in enumerate(kinds.values()):
        hear(done, len(kinds))
        total += count * time_update(spec, device)
    hear(len(kinds), len(kinds))
    return total
