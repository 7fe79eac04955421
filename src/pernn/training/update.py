"""One update: a batch goes in, the state changes."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor, nn

from pernn.interfaces import Batch

from .config import Protocol, TrainingConfig
from .objective import batch_loss, find_scored
from .precision import rounding
from .schedule import learning_rate
from .state import TrainState


@dataclass(frozen=True)
class Shown:
    """A batch on the device.

    Attributes:
        tokens: What the network is shown.
        targets: What is expected of the scored steps, one after another if they are named.
        scored: Which of the last steps are scored; all if absent.
        num_queries: Steps after the tokens.
        num_scored: Last steps that have targets.
    """

    tokens: Tensor
    targets: Tensor
    scored: Tensor | None
    num_queries: int
    num_scored: int

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> "Shown":
        """Move a batch to the device without waiting for it."""
        mask = find_scored(batch.targets)
        targets = batch.targets if mask is None else batch.targets[mask]
        arrays = (batch.tokens, targets, mask)
        tokens, kept, scored = (
            None if array is None else _move(torch.from_numpy(array), device) for array in arrays
        )
        assert tokens is not None and kept is not None  # noqa: S101, PT018 both are arrays
        return cls(tokens, kept, scored, batch.num_queries, batch.targets.shape[1])


class Update:
    """Updates that run as they are written.

    Args:
        state: What they change.
        config: How many and how fast.
        protocol: Whether gradients are clipped.
        device: Where.
    """

    def __init__(
        self, state: TrainState, config: TrainingConfig, protocol: Protocol, device: torch.device
    ) -> None:
        self.state, self.config, self.device = state, config, device
        self.parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
        self.clip_norm = inf if protocol.clip_norm is None else protocol.clip_norm

    def __call__(self, batch: Batch) -> None:
        """Make the next update."""
        self.state.update += 1
        self.set_rate(learning_rate(self.state.update, self.config))
        self.run(Shown.of(batch, self.device))

    def set_rate(self, rate: float) -> None:
        """Set the learning rate, in place where it is a tensor."""
        for group in self.state.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def run(self, shown: Shown) -> None:
        """Change the state; nothing in here waits for the device."""
        state = self.state
        with rounding(self.config.precision, self.device):
            loss, right = batch_loss(
                state.network,
                shown.tokens,
                shown.num_queries,
                shown.num_scored,
                shown.scored,
                shown.targets,
            )
        state.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        state.optimizer.step()
        state.sums += torch.stack([loss.detach(), norm, right])


Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes what is to be repeated, may run it a few times, and gives what repeats it."""


class RecordedUpdate(Update):
    """Updates that are recorded once and then repeated, so that a GPU never waits for Python.

    The recording reads a batch and a learning rate from places of their own, which are filled
    before each repetition. A batch of another shape, or one of which not all steps are scored, runs
    as it is written.

    Args:
        state: What they change.
        config: How many and how fast.
        protocol: Whether gradients are clipped.
        device: Where.
        capture: What records; a CUDA graph if absent.
    """

    def __init__(
        self,
        state: TrainState,
        config: TrainingConfig,
        protocol: Protocol,
        device: torch.device,
        capture: Capture | None = None,
    ) -> None:
        super().__init__(state, config, protocol, device)
        self._capture = capture or cuda_graph
        self._places: Shown | None = None
        self._repeat: Callable[[], None] | None = None

    def __call__(self, batch: Batch) -> None:
        """Make the next update."""
        self.state.update += 1
        self.set_rate(learning_rate(self.state.update, self.config))
        shown = Shown.of(batch, self.device)
        if self._repeat is None and shown.scored is None:
            self._record(shown)
        if self._repeat is None or self._places is None or not _alike(shown, self._places):
            self.run(shown)
            return
        self._places.tokens.copy_(shown.tokens)
        self._places.targets.copy_(shown.targets)
        self._repeat()

    def _record(self, shown: Shown) -> None:
        places = self._places = Shown(
            shown.tokens.clone(), shown.targets.clone(), None, shown.num_queries, shown.num_scored
        )
        kept = [(place, place.clone()) for place in self._changing()]
        self._repeat = self._capture(lambda: self.run(places))
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
        moments = [
            value
            for parameter in self.parameters
            for value in self.state.optimizer.state.get(parameter, {}).values()
            if isinstance(value, Tensor)
        ]
        return [*(parameter.data for parameter in self.parameters), *moments, self.state.sums]


def make_update(
    state: TrainState, config: TrainingConfig, protocol: Protocol, device: torch.device
) -> Update:
    """Give the fastest updates that a device has."""
    kind = RecordedUpdate if device.type == "cuda" else Update
    return kind(state, config, protocol, device)


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


def _alike(shown: Shown, places: Shown) -> bool:
    return (
        shown.scored is None
        and shown.tokens.shape == places.tokens.shape
        and shown.targets.shape == places.targets.shape
        and (shown.num_queries, shown.num_scored) == (places.num_queries, places.num_scored)
    )


def _move(array: Tensor, device: torch.device) -> Tensor:
    if device.type == "cpu":
        return array
    return array.pin_memory().to(device, non_blocking=True)
