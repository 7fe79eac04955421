"""Runs in two stages: a network is pretrained in a run of its own, then goes on to a larger task.

The pretraining is an ordinary run with an ordinary directory: whatever is killed in between, each
stage goes on from its own checkpoint, and runs that share a pretraining share its directory.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import nn

from pernn.errors import BusyError, ConfigError, CorruptError
from pernn.models import PositionEncodedRNN, extend_vocabulary
from pernn.randomness import RandomStream, Split
from pernn.store import RunDirectory

from .assembly import Trial, build
from .spec import RunSpec

WAIT_SECONDS = 0.5
"""Between looks at a pretraining that another process works on."""


def wait_for(attempt: Callable[[], bool], may_go_on: Callable[[], bool]) -> bool:
    """Repeat an attempt while another process is busy with it.

    Args:
        attempt: Says whether it came to its end; may raise `BusyError`.
        may_go_on: Asked between attempts; `False` gives up.

    Returns:
        What the attempt said, or `False` if given up.
    """
    while True:
        try:
            return attempt()
        except BusyError:
            if not may_go_on():
                return False
            time.sleep(WAIT_SECONDS)


def restore_weights(
    model: nn.Module, arrays: Mapping[str, Shaped[np.ndarray, "..."]], source: Path
) -> None:
    """Return a network the weights of a checkpoint.

    Raises:
        CorruptError: If names, shapes or types are not those of the network.
    """
    try:
        found = {name: torch.from_numpy(arrays[f"model.{name}"]) for name in model.state_dict()}
        model.load_state_dict(found)
    except (KeyError, TypeError, RuntimeError) as error:
        raise CorruptError(f"{source}: a checkpoint that does not fit: {error}") from None


def build_stage(
    spec: RunSpec,
    root: Path,
    device: torch.device,
    warn: Callable[[str], None] = warnings.warn,
) -> Trial:
    """Make a trial's parts, from the end of its pretraining if it has one that did not diverge."""
    first = spec.first_stage()
    if first is None or read_divergence(first, root) is not None:
        return build(spec, device, warn)
    return build_extended(spec, first, root, device, warn)


def read_divergence(spec: RunSpec, root: Path) -> Mapping[str, Any] | None:
    """Return at which update and why a finished run diverged; `None` if it did not."""
    result = RunDirectory(root, spec.fingerprint()).read_result()
    return None if result is None else result.get("diverged")


def build_extended(
    spec: RunSpec,
    first: RunSpec,
    root: Path,
    device: torch.device,
    warn: Callable[[str], None] = warnings.warn,
) -> Trial:
    """Make a trial from the end of its pretraining, its vocabulary extended and the rest frozen.

    Args:
        spec: The trial.
        first: Its pretraining, `spec.first_stage()`, finished in `root`.
        root: Results directory.
        device: Where the network lives.
        warn: Told what was wrong but could be mended.

    Raises:
        ConfigError: If the task has no ids.
        CorruptError: If the pretraining's last checkpoint is not there.
    """
    directory = RunDirectory(root, first.fingerprint())
    checkpoint, _ = directory.checkpoints.load_latest()
    if checkpoint is None or checkpoint.update != first.training.iterations:
        raise CorruptError(
            f"{directory.path}: the pretraining is finished but its last checkpoint is missing or "
            "damaged: delete this directory to pretrain again"
        )
    trial = build(first, device, warn)
    model = trial.model
    if not isinstance(model, PositionEncodedRNN):
        raise ConfigError(f"task {spec.task.kind} has no ids: its vocabulary cannot be extended")
    restore_weights(model, checkpoint.arrays, directory.path)
    stream = RandomStream(spec.seed, "weights/extension", Split.WEIGHTS)
    generator = torch.Generator().manual_seed(stream.seed_word())
    task = spec.build_task()
    extend_vocabulary(model, task.vocab_size, generator)
    return Trial(model, task.stream(spec.seed), trial.preset)
