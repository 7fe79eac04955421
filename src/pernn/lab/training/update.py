"""Updates of the state, one after another, with events in between."""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from pernn.errors import ConfigError, MachineError, TrialError
from pernn.kernels import UsualNetwork, has_whole_updates
from pernn.lab.interfaces import Batch, BatchStream

from .config import Preset, TrainingConfig, encoding_strength, learning_rate
from .devices import RoundedOnly, rounding
from .objective import DeviceBatch, batch_loss, evaluate, show
from .state import REMEDY, FusedAdam, TrainState


@dataclass(eq=False)
class Update:
    """Updates that run as they are written.

    Args:
        state: What they change.
        config: How many and how fast.
        preset: Whether gradients are clipped.
        device: Where.
    """

    state: TrainState
    config: TrainingConfig
    preset: Preset
    device: torch.device

    def __post_init__(self) -> None:
        self.clip_norm = math.inf if self.preset.clip_norm is None else self.preset.clip_norm
        self._space = torch.empty(0)
        self._found: tuple[tuple[int, int], UsualNetwork | None] = (0, 0), None
        self._moments: list[list[Tensor]] = []
        # Of the first forward pass; it would slow all of them down.
        rounds = self.config.precision == "bf16" and self.device.type == "cpu"
        self._watch: AbstractContextManager[Any]
        self._watch = RoundedOnly() if rounds else nullcontext()  # type: ignore[no-untyped-call]

    def __call__(self, batch: Batch) -> None:
        """Make the next update."""
        self.step(show(batch, self.device, self.config.micro_batch))

    def step(self, pieces: Sequence[DeviceBatch]) -> None:
        """Make the next update with a batch on the device."""
        self.count()
        network = self._usual_network(pieces)
        if network is None:
            self.run(pieces)
        else:
            self._run_whole(network, pieces[0])

    def _usual_network(self, pieces: Sequence[DeviceBatch]) -> UsualNetwork | None:
        """Return what a whole update trains; `None` where only autograd does.

        It is looked for once, with its moments: that takes a tenth of a small network's update.
        """
        (shown, *more) = pieces
        if more or shown.rows is not None or not has_whole_updates(self.device):
            return None
        phases = shown.tokens.shape[1], shown.num_queries
        found_for, network = self._found
        is_constant = self.config.encoding_schedule == "always"
        if network and is_constant and found_for == phases and network.is_as_found():
            return network
        network = find_usual(self.state, self.config, self.device, sum(phases), shown.num_queries)
        if network:
            self._moments = self.state.optimizer.moments(network.weights)
            *_, counts = self._moments
            # A whole update counts once for all; what was frozen for a while has fewer.
            if len({float(count) for count in counts}) > 1:
                network = None
        self._found = phases, network
        return network

    def _run_whole(self, network: UsualNetwork, shown: DeviceBatch) -> None:
        state, adam = self.state, cast(FusedAdam, self.state.optimizer)
        torch.ops.pernn.update(
            network.kind, network.weights, *self._moments, network.encodings, network.copies,
            shown.tokens.contiguous(), shown.targets.contiguous(), shown.num_queries,
            adam.rate, *adam.betas, adam.eps, self.clip_norm, state.sums,
            self._space,  # Its memory, of any size: it grows, and serves the next update.
        )  # fmt: skip

    def count(self) -> None:
        """Start the next update: counter, encoding's strength, learning rate.

        A rate that is a tensor is set in place.
        """
        self.state.update += 1
        set_strength(self.state.model, self.state.update, self.config)
        optimizer, rate = self.state.optimizer, learning_rate(self.state.update, self.config)
        if isinstance(optimizer.rate, Tensor):
            optimizer.rate.fill_(rate)
        else:
            optimizer.rate = rate

    def run(self, pieces: Sequence[DeviceBatch]) -> None:
        """Change the state without waiting for the device."""
        state = self.state
        state.optimizer.zero_grad()
        found = [self._add_gradients(shown) for shown in pieces]
        loss, right = (sum(parts) for parts in zip(*found, strict=True))
        norm = clip_gradients(state.optimizer.parameters, self.clip_norm)
        state.optimizer.step()
        state.sums += torch.stack([loss, norm, right])

    def _add_gradients(self, shown: DeviceBatch) -> tuple[Tensor, Tensor]:
        watch, self._watch = self._watch, nullcontext()
        with rounding(self.config.precision, self.device), watch:
            loss, right = batch_loss(self.state.model, shown)
        torch.autograd.backward(loss)
        return loss.detach(), right


def set_strength(model: nn.Module, update: int, config: TrainingConfig) -> None:
    """Set the strength of a network's encoding to that of an update."""
    if config.encoding_schedule != "always":
        cast(Any, model).encoding.strength = encoding_strength(update, config)


def find_usual(
    state: TrainState,
    config: TrainingConfig,
    device: torch.device,
    num_steps: int = 1,
    num_queries: int = 0,
) -> UsualNetwork | None:
    """Return the network's parts for whole updates, or `None`."""
    find = getattr(state.model, "usual", None)
    if find is None or config.precision != "fp32" or config.micro_batch is not None:
        return None
    if not has_whole_updates(device) or not isinstance(state.optimizer, FusedAdam):
        return None
    network: UsualNetwork | None = find(num_steps, num_queries)
    return network


def clip_gradients(parameters: list[nn.Parameter], clip_norm: float) -> Tensor:
    """Return the norm of all gradients, and clip them.

    `torch.nn.utils.clip_grad_norm_` to the same bits, for parameters of one type on one device:
    sorting them takes longer than the work on a small network.
    """
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    torch._foreach_mul_(grads, torch.clamp(clip_norm / (norm + 1e-6), max=1.0))
    return norm


Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes what is to be repeated, may run it a few times, and gives what repeats it."""


def cuda_graph(run: Callable[[], None]) -> Callable[[], None]:
    """Record a CUDA graph after three warm-up runs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    replay: Callable[[], None] = graph.replay
    return replay


@dataclass(eq=False)
class RecordedUpdate(Update):
    """Updates that are recorded once, then repeated on a GPU.

    The recording reads batches and learning rates from places of their own, which are filled before
    each repetition. Batches of another shape run as they are written.

    Args:
        state: What they change.
        config: How many and how fast.
        preset: Whether gradients are clipped.
        device: Where.
        capture: What records.
    """

    capture: Capture = cuda_graph

    def __post_init__(self) -> None:
        super().__post_init__()
        self._places: list[DeviceBatch] = []
        self._repeat: Callable[[], None] | None = None

    def step(self, pieces: Sequence[DeviceBatch]) -> None:
        """Make the next update, by repetition if it can be."""
        self.count()
        if self._repeat is None and all(shown.rows is None for shown in pieces):
            self._record(pieces)
        shapes = [shown.shape for shown in pieces if shown.rows is None]
        if self._repeat is None or shapes != [place.shape for place in self._places]:
            self.run(pieces)
            return
        for shown, place in zip(pieces, self._places, strict=True):
            for value, kept in zip(shown.tensors(), place.tensors(), strict=True):
                kept.copy_(value)
        self._repeat()

    def _record(self, pieces: Sequence[DeviceBatch]) -> None:
        self._places = deepcopy([*pieces])
        optimizer, sums = self.state.optimizer, self.state.sums
        weights = [one.data for one in optimizer.parameters]
        moments = chain(*optimizer.moments(optimizer.parameters))
        kept = [(place, place.clone()) for place in (*weights, *moments, sums)]
        self._repeat = self.capture(lambda: self.run(self._places))
        # What ran to be recorded did not count.
        for place, value in kept:
            place.copy_(value)


def make_update(
    state: TrainState, config: TrainingConfig, preset: Preset, device: torch.device
) -> Update:
    """Return the fastest updates that a device has."""
    # A recording would repeat the strength that the encoding had when it was made.
    can_repeat = config.encoding_schedule == "always"
    kind = RecordedUpdate if device.type == "cuda" and can_repeat else Update
    return kind(state, config, preset, device)


def now(device: torch.device) -> float:
    """Return the time when the device's work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


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
            if not re.search("out of memory|(allocate|no) memory", f"{error} {error.__context__}"):
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
