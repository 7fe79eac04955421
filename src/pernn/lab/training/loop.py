"""The training loop: one update after another, events in between."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pernn.errors import ConfigError, MachineError, TrialError
from pernn.lab.interfaces import BatchStream

from .config import Preset, TrainingConfig, learning_rate
from .evaluation import evaluate
from .state import REMEDY, TrainState
from .update import make_update


@dataclass(frozen=True)
class Event:
    """An event after an update."""

    update: int


class Updated(Event):
    """One more update is done, and the state may be saved."""


class CheckpointDue(Event):
    """The spec wants a checkpoint here."""


@dataclass(frozen=True)
class Measured(Event):
    """Metrics of training, over a log interval, or of held-out sequences."""

    kind: str
    values: dict[str, float]


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
            if not ran_out_of_memory(error):
                raise
            raise MachineError(_remedy(config, device)) from error
        if state.update == first + 1 and not torch.equal(generator, torch.get_rng_state()):
            raise ConfigError(
                "the core, the encoding or the task draws from PyTorch's global generator in "
                "training, so no trial could be repeated: draw from `generator` in `build`"
            )
        yield from _events(state, stream, config, device)


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error comes from a lack of memory."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _remedy(config: TrainingConfig, device: torch.device) -> str:
    size = config.micro_batch or config.batch_size
    smaller = (
        f"set training.micro_batch={size // 2} (now {size} sequences at a time; the results are "
        "the same up to rounding)"
        if size > 1
        else "choose a smaller core.hidden_size or task.length"
    )
    return f"out of memory on {device}: {smaller}, or run fewer trials on it at once (--jobs)"


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
                first = update - count + 1
                own = "; or a part of your own gives no finite numbers" if first == 1 else ""
                raise TrialError(
                    f"the {what} became {value} within updates {first}–{update}: {REMEDY}{own}"
                )
        state.sums.zero_()
        rate = learning_rate(update, config)
        values = {"loss": loss, "gradient_norm": norm, "learning_rate": rate}
        if not math.isnan(right):
            values["token_accuracy"] = right
        yield Measured(update, "train", values)
    if update % config.evaluation_interval == 0 and not last:
        found = evaluate(state.network, stream, device, config.precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {update}: {REMEDY}")
        yield Measured(update, "test", dict(found.metrics))
    if update % config.checkpoint_interval == 0 or last:
        yield CheckpointDue(update)
    yield Updated(update)
