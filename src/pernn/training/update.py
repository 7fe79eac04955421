"""One update: a batch goes in, the state changes; or several at once, side by side."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from pernn.interfaces import Batch

from .config import Protocol, TrainingConfig
from .objective import Shown, pack_losses
from .precision import RoundedOnly, rounding
from .schedule import learning_rate
from .state import TrainState


class Update:
    """Updates that run as they are written.

    Args:
        states: What they change: one, or a pack, all after the same number of updates.
        config: How many and how fast.
        protocol: Whether gradients are clipped.
        device: Where.
    """

    def __init__(
        self,
        states: Sequence[TrainState],
        config: TrainingConfig,
        protocol: Protocol,
        device: torch.device,
    ) -> None:
        self.states, self.config, self.device = list(states), config, device
        self.clip_norm = inf if protocol.clip_norm is None else protocol.clip_norm
        # Of the first forward pass; it would slow all of them down.
        rounds = config.precision == "bf16" and device.type == "cpu"
        self._watch: AbstractContextManager[Any] = nullcontext()
        if rounds:
            self._watch = RoundedOnly()  # type: ignore[no-untyped-call]

    def __call__(self, batches: Sequence[Batch]) -> None:
        """Make the next update of every state, each with a batch of its own."""
        self.step([Shown.of(batch, self.device) for batch in batches])

    def step(self, shown: Sequence[Shown]) -> None:
        """Make the next update of every state, each with a batch on the device."""
        self.count()
        self.run(shown)

    def count(self) -> None:
        """Begin the next update: count it and set its learning rate, in place if it is a tensor."""
        for state in self.states:
            state.update += 1
            rate = learning_rate(state.update, self.config)
            for group in state.optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate

    def run(self, shown: Sequence[Shown]) -> None:
        """Change the states; nothing in here waits for the device."""
        watch, self._watch = self._watch, nullcontext()
        with rounding(self.config.precision, self.device), watch:
            found = pack_losses([state.network for state in self.states], shown)
        for state in self.states:
            state.optimizer.zero_grad()
        torch.autograd.backward([loss for loss, _ in found])
        for state, (loss, right) in zip(self.states, found, strict=True):
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
        states: What they change.
        config: How many and how fast.
        protocol: Whether gradients are clipped.
        device: Where.
        capture: What records; a CUDA graph if absent.
    """

    def __init__(
        self,
        states: Sequence[TrainState],
        config: TrainingConfig,
        protocol: Protocol,
        device: torch.device,
        capture: Capture | None = None,
    ) -> None:
        super().__init__(states, config, protocol, device)
        self._capture = capture or cuda_graph
        self._places: list[Shown] = []
        self._repeat: Callable[[], None] | None = None

    def step(self, shown: Sequence[Shown]) -> None:
        """Make the next update of every state, by repetition if it can be."""
        self.count()
        whole = all(one.scored is None for one in shown)
        if self._repeat is None and whole:
            self._record(shown)
        alike = [one.shape for one in shown] == [place.shape for place in self._places]
        if self._repeat is None or not whole or not alike:
            self.run(shown)
            return
        for place, one in zip(self._places, shown, strict=True):
            place.tokens.copy_(one.tokens)
            place.targets.copy_(one.targets)
        self._repeat()

    def _record(self, shown: Sequence[Shown]) -> None:
        self._places = [
            replace(one, tokens=one.tokens.clone(), targets=one.targets.clone()) for one in shown
        ]
        kept = [(place, place.clone()) for place in self._changing()]
        self._repeat = self._capture(lambda: self.run(self._places))
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
        return [
            value
            for state in self.states
            for value in (
                *(parameter.data for parameter in state.parameters),
                *(
                    moment
                    for parameter in state.parameters
                    for moment in state.optimizer.state.get(parameter, {}).values()
                ),
                state.sums,
            )
        ]


def make_update(
    states: Sequence[TrainState],
    config: TrainingConfig,
    protocol: Protocol,
    device: torch.device,
) -> Update:
    """Give the fastest updates that a device has."""
    kind = RecordedUpdate if device.type == "cuda" else Update
    return kind(states, config, protocol, device)


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
