"""The training loop: one update after another, events in between."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch

from pernn.errors import ConfigError, MachineError, TrialError
from pernn.lab.interfaces import BatchStream

from .config import Preset, TrainingConfig, learning_rate
from .evaluation import evaluate
from .state import REMEDY, TrainState
from .update import make_update


@dataclass(frozen=True)
class Event:
    """An event after an update.

    Attributes:
        update: Number of updates done.
        kind: `train` or `test` come with metrics, over a log interval or of held-out sequences; at
            `checkpoint` the spec wants one; `update` is the last event of each.
        values: The metrics.
    """

    update: int
    kind: Literal["train", "test", "checkpoint", "update"]
    values: dict[str, float] = field(default_factory=dict)


def advance(
    state: TrainState,
    stream: BatchStream,
    config: TrainingConfig,
    preset: Preset,
    device: torch.device,
) -> Iterator[Event]:
    """Train until `config.iterations`, yielding after every update what happened.

    The state may be saved whenever an event arrives; a saved state continues with the same bits.

    Raises:
        ConfigError: If PyTorch's global generator is drawn from, which no checkpoint holds.
        MachineError: If the device has too little memory.
        TrialError: If loss or gradients are not finite at the end of a log interval.
    """
    update, generator = make_update(state, config, preset, device), torch.get_rng_state()
    first = state.update
    while state.update < config.iterations:
        batch = stream.train(state.update, config.batch_size)
        try:
            update(batch)
        except RuntimeError as error:
            # An error in a recording stands before that which it comes from.
            if not re.search("out of memory|allocate memory", f"{error} {error.__context__}"):
                raise
            raise MachineError(
                f"out of memory on {device}: set training.micro_batch below "
                f"{config.micro_batch or config.batch_size} sequences at a time (the results are "
                "the same up to rounding), or run fewer trials on it at once (--jobs)"
            ) from error
        if state.update == first + 1 and not torch.equal(generator, torch.get_rng_state()):
            raise ConfigError(
                "the core, the encoding or the task draws from PyTorch's global generator in "
                "training, so no trial could be repeated: draw from `generator` in `build`"
            )
        yield from _events(state, stream, config, device)


def _events(
    state: TrainState, stream: BatchStream, config: TrainingConfig, device: torch.device
) -> Iterator[Event]:
    """Return what is due after an update, in an order that a checkpoint can rely on."""
    update, last = state.update, state.update == config.iterations
    if update % config.log_interval == 0 or last:
        count = (update - 1) % config.log_interval + 1
        loss, norm, right = (state.sums / count).tolist()
        for what, value in (("loss", loss), ("gradient's norm", norm)):
            if not math.isfinite(value):
                raise TrialError(
                    f"the {what} became {value} within updates {update - count + 1}–{update}: "
                    f"{REMEDY}"
                )
        state.sums.zero_()
        rate = learning_rate(update, config)
        values = {"loss": loss, "gradient_norm": norm, "learning_rate": rate}
        if not math.isnan(right):
            values["token_accuracy"] = right
        yield Event(update, "train", values)
    if update % config.evaluation_interval == 0 and not last:
        found = evaluate(state.model, stream, device, config.precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {update}: {REMEDY}")
        yield Event(update, "test", dict(found.metrics))
    if update % config.checkpoint_interval == 0 or last:
        yield Event(update, "checkpoint")
    yield Event(update, "update")
