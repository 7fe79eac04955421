"""Anatomy of a network: wrong answers, and tokens in its state."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pernn.analysis import (
    RecallErrors,
    input_gradients,
    latent_states,
    log_slope,
    perturb,
    position_changes,
    read_linearly,
    recall_errors,
    subspace_overlap,
)
from pernn.errors import ConfigError
from pernn.lab.tasks import SyntheticTask
from pernn.lab.training import TrainingConfig, choose_device, predict
from pernn.models import PositionEncodedRNN
from pernn.randomness import RandomStream, Split

from .building import load_model, read_run
from .spec import AnatomyAnalysis

Tables = dict[str, dict[str, list[Any]]]
NOISE_DRAWS = 4
"""Copies of a network with noise on their weights."""
FEWER = 4
"""One in this many sequences is enough for gradients and replaced tokens, and read for the time."""


def find_errors(run: Path, *, device: str = "auto") -> RecallErrors:
    """Sort the wrong answers of a run's newest checkpoint.

    Raises:
        ConfigError: If it is no run's directory, or none whose answers are tokens of the input
            that each stand at one step.
    """
    spec, _ = read_run(run)
    task, chosen = spec.build_task(), choose_device(device)
    if not isinstance(task, SyntheticTask):
        raise ConfigError(f"recall errors are those of tokens, not of {spec.task.kind}")
    batch = task.stream(spec.seed).test()
    answers = predict(load_model(run, device=chosen), batch, chosen).values
    inputs = batch.tokens[:, : task.longest]
    return recall_errors(inputs, batch.targets, answers, task.vocab_size)


def tabulate_errors(found: RecallErrors) -> dict[str, list[Any]]:
    """Put errors into a table, a row for each distance."""
    return {
        "distance": [*range(1, len(found.counts))],
        "share": found.shares[1:].tolist(),
        "chance": found.chances[1:].tolist(),
    }


def nearest_checkpoints(
    levels: Iterable[float], training: TrainingConfig, lines: Iterable[Mapping[str, Any]]
) -> dict[int, list[float]]:
    """Map the kept checkpoints nearest to the levels to them.

    Args:
        levels: Training accuracies.
        training: Says which checkpoints are kept.
        lines: Metrics of the training.
    """
    interval, last = training.kept_interval, training.iterations
    curve = [(one["update"], one["token_accuracy"]) for one in lines if one["kind"] == "train"]
    found: dict[int, list[float]] = {}
    for level in levels:
        first = next((update for update, accuracy in curve if accuracy >= level), last)
        # Between the last multiple of the interval and the end, whichever is nearer.
        kept = (*range(interval, last, interval), last)
        found.setdefault(min(kept, key=lambda one: abs(one - first)), []).append(level)
    return found


class Anatomy:
    """Measures networks of one task with the same sequences.

    Args:
        config: What is measured.
        task: Which answers are tokens of the input.
        seed: Which sequences.
        device: Where the networks are.

    Raises:
        ConfigError: If outputs are fed back.
    """

    def __init__(
        self, config: AnatomyAnalysis, task: SyntheticTask, seed: int, device: torch.device
    ) -> None:
        if task.network != "queried" or len(task.length.possible) > 1:
            raise ConfigError(
                "the anatomy is that of networks that answer queries about sequences of one "
                f"length, got {task.name!r}"
            )
        self.config, self.task, self.device = config, task, device
        self.stream = RandomStream(seed, task.name, Split.ANALYSIS)
        # Pairs of sequences take later steps of this stream.
        words = self.stream.words(0, config.num_sequences * task.num_draws)
        self.inputs = task.draw(words.reshape(config.num_sequences, -1))
        self.batch = task.batch(self.inputs)

    def tables(self, model: PositionEncodedRNN) -> Tables:
        """Return a network's measurements: one row of numbers, four tables."""
        batch, length = self.batch, self.inputs.shape[1]
        found = self._errors(model)
        generator = torch.Generator().manual_seed(int(self.stream.words(0, 1, lane=1)[0] >> 1))
        noisy = [
            np.mean(
                [
                    self._errors(perturb(model, share, generator)).accuracy
                    for _ in range(NOISE_DRAWS)
                ]
            )
            for share in self.config.noise
        ]
        with torch.no_grad():
            tokens = torch.from_numpy(batch.tokens).to(self.device)
            gates = model.project(tokens, batch.num_queries)
        few = gates[: len(gates) // FEWER, :length]
        slope = log_slope(input_gradients(model.core, few, model.embedding.embedding_dim))
        overlap = subspace_overlap(position_changes(model.core, few, few.roll(1, 0)))
        states = latent_states(model.core, gates).cpu().numpy()
        tokens_read, time_read = self._read_tokens(states), _read_time(states[::FEWER])
        numbers = {
            "accuracy": found.accuracy,
            "neighbour_share": found.shares[1],
            "sequence_share": found.shares[1:].sum(),
            "neighbour_chance": found.chances[1],
            "gradient_slope": slope.mean().item(),
            "gradient_slope_size": slope.mean().abs().item(),
            "overlap": (overlap.sum().item() - length) / (length * (length - 1)),
            "tokens_read": np.mean(tokens_read["read"][-length:]),
            "time_read": np.mean(time_read["read"]),
        }
        return {
            "anatomy": {name: [float(value)] for name, value in numbers.items()},
            "errors": tabulate_errors(found),
            "noise": {
                "noise": [*self.config.noise],
                "loss": [float(found.accuracy - accuracy) for accuracy in noisy],
            },
            "tokens": tokens_read,
            "time": time_read,
        }

    def _errors(self, model: PositionEncodedRNN) -> RecallErrors:
        answers = predict(model, self.batch, self.device).values
        return recall_errors(self.inputs, self.batch.targets, answers, self.task.vocab_size)

    def _read_tokens(self, states: np.ndarray) -> dict[str, list[Any]]:
        """Read every token that was shown from the state after every step of the input."""
        length = self.inputs.shape[1]
        places = [(t, p) for t in range(length) for p in range(t + 1)]
        read = [read_linearly(states[:, t], self.inputs[:, p]).mean() for t, p in places]
        steps, positions = ([place + 1 for place in axis] for axis in zip(*places, strict=True))
        return {"step": steps, "position": positions, "read": [float(share) for share in read]}


def _read_time(states: np.ndarray) -> dict[str, list[Any]]:
    """Read the step from the state after it."""
    count, num_steps, width = states.shape
    labels = np.tile(np.arange(num_steps), count)
    read = read_linearly(states.reshape(-1, width), labels).reshape(count, num_steps)
    return {"step": [*range(1, num_steps + 1)], "read": read.mean(axis=0).tolist()}
