"""One update: a batch goes in, the state changes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from pernn.interfaces import Batch

from .config import Preset, TrainingConfig
from .objective import DeviceBatch, batch_loss
from .precision import RoundedOnly, rounding
from .schedule import learning_rate
from .state import TrainState


class Update:
    """Updates that run as they are written.

    Args:
        state: What they change.
        config: How many and how fast.
        preset: Whether gradients are clipped.
        device: Where.
    """

    def __init__(
        self,
        state: TrainState,
        config: TrainingConfig,
        preset: Preset,
        device: torch.device,
    ) -> None:
        self.state, self.config, self.device = state, config, device
        self.clip_norm = inf if preset.clip_norm is None else preset.clip_norm
        # Of the first forward pass; it would slow all of them down.
        rounds = config.precision == "bf16" and device.type == "cpu"
        self._watch: AbstractContextManager[Any] = nullcontext()
        if rounds:
            self._watch = RoundedOnly()  # type: ignore[no-untyped-call]

    def __call__(self, batch: Batch) -> None:
        """Run the next update."""
        self.step(DeviceBatch.of(batch, self.device))

    def step(self, shown: DeviceBatch) -> None:
        """Run the next update with a batch that is on the device."""
        self.count()
        self.run(shown)

    def count(self) -> None:
        """Begin the next update: count it and set its learning rate, in place if it is a tensor."""
        self.state.update += 1
        rate = learning_rate(self.state.update, self.config)
        for group in self.state.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def run(self, shown: DeviceBatch) -> None:
        """Change the state; nothing in here waits for the device."""
        state = self.state
        watch, self._watch = self._watch, nullcontext()
        with rounding(self.config.precision, self.device), watch:
            loss, right = batch_loss(state.network, shown)
        state.optimizer.zero_grad()
        torch.autograd.backward(loss)
        norm = nn.utils.clip_grad_norm_(state.parameters, self.clip_norm)
        state.optimizer.step()
        state.sums += torch.stack([loss.detach(), norm, right])


Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes what is to be repeated, may run it a few times, and gives what repeats it."""


class RecordedUpdate(Update):
    """Updates that are recorded once and then repeated, so that a GPU never waits for Python.

    The recording reads batches and learning rates from places of their own, which are filled before
    each repetition. Batches of another shape, or of which not all steps are scored, run as they are
    written.

    Args:
        state: What they change.
        config: How many and how fast.
        preset: Whether gradients are clipped.
        device: Where.
        capture: What records; a CUDA graph if absent.
    """

    def __init__(
        self,
        state: TrainState,
        config: TrainingConfig,
        preset: Preset,
        device: torch.device,
        capture: Capture | None = None,
    ) -> None:
        super().__init__(state, config, preset, device)
        self._capture = capture or cuda_graph
        self._place: DeviceBatch | None = None
        self._repeat: Callable[[], None] | None = None

    def step(self, shown: DeviceBatch) -> None:
        """Run the next update, by repetition if it can be."""
        self.count()
        if self._place is None and shown.scored is None:
            self._record(shown)
        place, repeat = self._place, self._repeat
        if (
            place is None
            or repeat is None
            or shown.scored is not None
            or shown.shape != place.shape
        ):
            self.run(shown)
            return
        place.tokens.copy_(shown.tokens)
        place.targets.copy_(shown.targets)
        repeat()

    def _record(self, shown: DeviceBatch) -> None:
        fixed = replace(shown, tokens=shown.tokens.clone(), targets=shown.targets.clone())
        kept = [(place, place.clone()) for place in self._changing()]
        self._place, self._repeat = fixed, self._capture(lambda: self.run(fixed))
        # What ran to be recorded did not count.
        fresh = {id(place) for place, _ in kept}
        for place in self._changing():
            if id(place) not in fresh:
                place.zero_()
        for place, value in kept:
            place.copy_(value)

    @torch.no_grad()
    def _changing(self) -> list[Tensor]:
        """Everything that an update changes: weights, moments, step counts, sums."""
        state = self.state
        return [
            *(parameter.data for parameter in state.parameters),
            *(
                moment
                for parameter in state.parameters
                for moment in state.optimizer.state.get(parameter, {}).values()
            ),
            state.sums,
        ]


def make_update(
    state: TrainState, config: TrainingConfig, preset: Preset, device: torch.device
) -> Update:
    """Return the fastest updates that a device has."""
    kind = RecordedUpdate if device.type == "cuda" else Update
    return kind(state, config, preset, device)


def cuda_graph(run: Callable[[], None]) -> Callable[[], None]:
    """Record into a CUDA graph, after three runs in which libraries set themselves up."""
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
