"""The training loop: one update after another, events in between."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from pernn.errors import TrialError
from pernn.interfaces import BatchStream

from .config import Protocol, TrainingConfig
from .evaluation import evaluate
from .schedule import learning_rate
from .state import REMEDY, TrainState
from .update import make_update


@dataclass(frozen=True)
class Updated:
    """One more update is done; the state is whole and may be saved."""

    update: int


@dataclass(frozen=True)
class Measured:
    """Metrics of training (means over the log interval) or of the held-out sequences."""

    update: int
    kind: str
    values: dict[str, float]


@dataclass(frozen=True)
class CheckpointDue:
    """The spec wants a checkpoint here."""

    update: int


Event = Updated | Measured | CheckpointDue


def advance(
    state: TrainState,
    stream: BatchStream,
    config: TrainingConfig,
    protocol: Protocol,
    device: torch.device,
) -> Iterator[Event]:
    """Train until `config.iterations`, yielding after every update what happened.

    The state may be saved whenever an event arrives; a saved state continues with the same bits.

    Raises:
        TrialError: If loss or gradients are not finite at the end of a log interval.
    """
    for _, event in advance_pack([(state, stream)], config, protocol, device):
        if isinstance(event, TrialError):
            raise event
        yield event


def advance_pack(
    members: Sequence[tuple[TrainState, BatchStream]],
    config: TrainingConfig,
    protocol: Protocol,
    device: torch.device,
) -> Iterator[tuple[int, Event | TrialError]]:
    """Train several networks side by side, yielding whose event it is, and the event.

    A member whose loss is not finite ends with that error; the others go on without it.

    Args:
        members: States after the same number of updates, and their data.
        config: How many updates and how fast, for all.
        protocol: Whether gradients are clipped.
        device: Where.
    """
    left = dict(enumerate(members))
    update = None
    while left and next(iter(left.values()))[0].update < config.iterations:
        if update is None:
            update = make_update([state for state, _ in left.values()], config, protocol, device)
        update([stream.train(state.update, config.batch_size) for state, stream in left.values()])
        for number, (state, stream) in list(left.items()):
            try:
                for event in _events(state, stream, config, device):
                    yield number, event
            except TrialError as error:
                del left[number]
                update = None
                yield number, error


def _events(
    state: TrainState, stream: BatchStream, config: TrainingConfig, device: torch.device
) -> Iterator[Event]:
    """Say what is due after an update, in an order that a checkpoint can rely on."""
    update, last = state.update, state.update == config.iterations
    if update % config.log_interval == 0 or last:
        count = (update - 1) % config.log_interval + 1
        loss, norm, right = (state.sums / count).tolist()
        for what, value in (("loss", loss), ("gradient's norm", norm)):
            if not math.isfinite(value):
                first = update - count + 1
                raise TrialError(
                    f"the {what} became {value} within updates {first}–{update}: {REMEDY}"
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
