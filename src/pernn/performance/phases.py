"""Where an update's time goes, phase by phase, and the least that each phase needs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import torch
from torch import Tensor

from pernn.cores import Projected
from pernn.models import PositionEncodedRNN, run_core
from pernn.runs import RunSpec, Trial
from pernn.training import (
    DeviceBatch,
    TrainState,
    computing,
    linear_cross_entropy,
    make_update,
    now,
)

from .ceilings import Ceilings
from .work import estimate_work

T = TypeVar("T")
PHASES = ("data", "projection", "recurrence", "output_layer", "optimizer")


@dataclass(frozen=True)
class Phase:
    """One phase of an update.

    Attributes:
        name: One of `PHASES`.
        seconds: Its time, forward and back.
        operations: Floating-point operations of its products.
        num_bytes: Least traffic with the memory: what it is given and what it leaves behind.
        limit_seconds: Time that the operations need at the machine's highest rate; 0 without
            products. Traffic sets no limit, as caches take most of it.
    """

    name: str
    seconds: float
    operations: float
    num_bytes: float
    limit_seconds: float

    @property
    def share_of_limit(self) -> float:
        """Limit over time."""
        return self.limit_seconds / self.seconds if self.seconds else 0.0


class Stopwatch:
    """One update cut into its phases, each with inputs of its own.

    Args:
        spec: What is trained: ids, asked by queries.
        trial: Its parts.
        state: What the updates change.
        device: Where.
    """

    def __init__(
        self,
        spec: RunSpec,
        trial: Trial,
        state: TrainState,
        device: torch.device,
    ) -> None:
        self._spec, self._trial, self._state, self._device = spec, trial, state, device
        self._model = cast(PositionEncodedRNN, trial.model)
        self._update = make_update(state, spec.training, trial.preset, device)
        self._step = 0

    def lap(self) -> dict[str, float]:
        """Run an update and return the seconds of each phase."""
        model, device = self._model, self._device
        seconds: dict[str, float] = {}

        def timed(name: str, run: Callable[[], T]) -> T:
            begun = now(device)
            result = run()
            seconds[name] = seconds.get(name, 0.0) + now(device) - begun
            return result

        def states_of(inputs: Projected) -> Tensor:
            outputs, _ = run_core(model.core, inputs, num_outputs=shown.num_scored)
            return outputs.transpose(0, 1)

        with computing(self._spec.training.precision, device):
            shown = timed("data", self._draw)
            counts = shown.num_queries, shown.num_scored
            made = timed("projection", lambda: model.prepare(shown.tokens, *counts))
            table = _leaf(made.table)
            encodings = None if made.encodings is None else _leaf(made.encodings)
            cut = replace(made, table=table, encodings=encodings)
            outputs = timed("recurrence", lambda: states_of(cut))
            states = _leaf(outputs)
            rows, layer = states.flatten(0, 1), model.output_layer
            ids = shown.targets.t().flatten()
            loss, _ = timed(
                "output_layer", lambda: linear_cross_entropy(rows, layer.weight, layer.bias, ids)
            )
            timed("output_layer", loss.backward)
            timed("recurrence", lambda: outputs.backward(states.grad))
            ends = [(table, made.table)]
            if encodings is not None and made.encodings is not None:
                ends.append((encodings, made.encodings))
            ends = [(leaf, end) for leaf, end in ends if end.requires_grad]
            gradients = [leaf.grad for leaf, _ in ends]
            timed(
                "projection",
                lambda: torch.autograd.backward([end for _, end in ends], gradients),
            )
            timed("optimizer", self._finish)
        return seconds

    def _draw(self) -> DeviceBatch:
        batch = self._trial.stream.train(self._step, self._spec.training.batch_size)
        self._step += 1
        return DeviceBatch.of(batch, self._device)

    def whole(self) -> float:
        """Run an update in one piece and return its seconds."""
        precision = self._spec.training.precision
        with computing(precision, self._device):
            begun = now(self._device)
            batch = self._trial.stream.train(self._step, self._spec.training.batch_size)
            self._update(batch)
            taken = now(self._device) - begun
        self._step += 1
        return taken

    def _finish(self) -> None:
        torch.nn.utils.clip_grad_norm_(self._state.parameters, self._update.clip_norm)
        self._state.optimizer.step()
        self._state.optimizer.zero_grad()


def limits(spec: RunSpec, ceilings: Ceilings) -> dict[str, tuple[float, float, float]]:
    """Return operations, bytes and least seconds of every phase."""
    work, precision = estimate_work(spec), spec.training.precision
    return {
        name: (
            work.operations[name],
            work.num_bytes[name],
            ceilings.seconds(work.operations[name], precision),
        )
        for name in PHASES
    }


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()
