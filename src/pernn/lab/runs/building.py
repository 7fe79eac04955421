"""Spec → live objects: the one file that knows every part."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import nn

from pernn.encodings import Encoding
from pernn.errors import ConfigError, CorruptError
from pernn.lab.interfaces import BatchStream, Task
from pernn.lab.store import RunDirectory
from pernn.lab.training import PRESETS, Preset, set_strength
from pernn.models import (
    AutoregressiveRNN,
    CodedRNN,
    PositionEncodedRNN,
    VectorRNN,
    extend_vocabulary,
)
from pernn.randomness import RandomStream, Split

from .spec import RunSpec


@dataclass(frozen=True)
class Trial:
    """The parts of a trial, ready to train.

    Attributes:
        model: The network with its initial weights, on the device.
        stream: Its data.
        preset: The settings of its preset.
    """

    model: PositionEncodedRNN | VectorRNN
    stream: BatchStream
    preset: Preset


def build_task(spec: RunSpec, device: torch.device) -> Task:
    """Make a trial's task, as the preset has it."""
    with seeded_globals(spec, "task", device):
        return spec.build_task()


def build(spec: RunSpec, device: torch.device, task: Task | None = None) -> Trial:
    """Make a trial's parts, each from its own random stream.

    Networks of one seed that share a part (embedding, output layer) thus share its initial weights:
    trials are paired in weights as well as in data. Weights are drawn on the CPU, so they do not
    depend on the device. A part that draws from a global generator instead finds it seeded.

    Args:
        spec: The trial.
        device: Where the network lives.
        task: What `build_task` made of the spec; made here if absent.
    """
    preset, task = PRESETS[spec.preset], task or build_task(spec, device)
    with seeded_globals(spec, "task", device):
        stream = task.stream(spec.seed)
    with seeded_globals(spec, "encoding", device):
        generator = _generator(spec, "encoding")
        encoding = spec.encoding.build(task.num_steps, preset.layout, generator)
        _check_prefix(encoding, task.num_steps)
    width, network = spec.embedding_size, task.network
    # The phases' vectors are as wide as a token's.
    phase_sizes = {"autoregressive": width, "coded": getattr(task, "code_size", 0)}
    phase_size = phase_sizes.get(network, 0)
    with seeded_globals(spec, "core", device):
        joined_size = encoding.joined_size(width) + phase_size
        core = spec.core.build(joined_size, _generator(spec, "core"))
    parts = {"embedding_size": width, "generator": _generator(spec, "embedding")}
    if network != "vector":
        parts |= {"num_extra_rows": len(task.extra_rows), "phase_size": phase_size}
    kinds = {"autoregressive": AutoregressiveRNN, "coded": CodedRNN, "vector": VectorRNN}
    kind: Any = kinds.get(network, PositionEncodedRNN)
    model: PositionEncodedRNN | VectorRNN = kind(task.vocab_size, core, encoding, **parts)
    if isinstance(model, AutoregressiveRNN):
        model.reset_phase(_generator(spec, "phase"))
    model.reset_output_layer(_generator(spec, "readout"))
    set_strength(model, spec.training.iterations, spec.training)
    if spec.training.frozen_embedding:
        model.embedding.requires_grad_(False)
    return Trial(model.to(device), stream, preset)


def _check_prefix(encoding: Encoding, num_steps: int) -> None:
    if not encoding.size or num_steps < 2:
        return
    longer, shorter = encoding.vectors(num_steps), encoding.vectors(num_steps - 1)
    if not torch.allclose(longer[:-1], shorter, atol=1e-5, equal_nan=True):
        raise ConfigError(
            f"{type(encoding).__name__}.vectors is invalid: expected the vectors of "
            f"{num_steps - 1} steps to be the first of those of {num_steps}, and the same at "
            "every call"
        )


def _generator(spec: RunSpec, part: str) -> torch.Generator:
    """Make a generator of a part's initial weights from the trial's seed."""
    stream = RandomStream(spec.seed, f"weights/{part}", Split.WEIGHTS)
    return torch.Generator().manual_seed(stream.seed_word())


@contextmanager
def seeded_globals(spec: RunSpec, part: str, device: torch.device) -> Iterator[None]:
    """Seed the global generators while a part is built, then restore.

    A part that draws from them instead of from the generator that it is handed is repeatable, too.
    """
    word = RandomStream(spec.seed, f"weights/{part}/global", Split.WEIGHTS).seed_word()
    if device.type == "cuda":
        torch.cuda.init()
    on_cuda = torch.cuda.is_initialized()
    # It is others who use NumPy's legacy generator.
    legacy = np.random
    before = random.getstate(), legacy.get_state()
    devices = range(torch.cuda.device_count()) if on_cuda else ()
    try:
        with torch.random.fork_rng(devices):
            torch.default_generator.manual_seed(word)
            if on_cuda:
                torch.cuda.manual_seed_all(word)
            legacy.seed(word % 2**32)
            random.seed(word)
            yield
    finally:
        random.setstate(before[0])
        legacy.set_state(before[1])


def restore_weights(
    model: nn.Module, arrays: Mapping[str, Shaped[np.ndarray, "..."]], source: Path
) -> None:
    """Put the weights of a checkpoint into a network."""
    try:
        found = {name: torch.from_numpy(arrays[f"model.{name}"]) for name in model.state_dict()}
        model.load_state_dict(found)
    except (KeyError, TypeError, RuntimeError) as error:
        raise CorruptError(f"{source}: a checkpoint that does not fit: {error}") from None


def build_stage(spec: RunSpec, root: Path, device: torch.device, task: Task | None = None) -> Trial:
    """Make a trial's parts, from its pretraining if there is one.

    The pretraining is an ordinary run with a directory of its own: runs that share it share that.

    Raises:
        ConfigError: If the task has no ids, and the vocabulary is to be extended.
        CorruptError: If the pretraining's last checkpoint is not there.
    """
    first = spec.first_stage()
    directory = RunDirectory(root, (first or spec).fingerprint())
    if first is None or (directory.read_result() or {}).get("diverged"):
        return build(spec, device, task)
    checkpoint, _ = directory.checkpoints.load_latest()
    if checkpoint is None or checkpoint.update != first.training.iterations:
        raise CorruptError(
            f"{directory.path}: the pretraining is finished but its last checkpoint is missing or "
            "damaged: delete this directory to pretrain again"
        )
    trial = build(first, device)
    model = trial.model
    if not isinstance(model, PositionEncodedRNN):
        raise ConfigError(f"task {spec.task.kind} has no ids: its vocabulary cannot be extended")
    restore_weights(model, checkpoint.arrays, directory.path)
    task = task or build_task(spec, device)
    extend_vocabulary(model, task.vocab_size, _generator(spec, "extension"))
    return Trial(model, task.stream(spec.seed), trial.preset)


def read_run(path: Path) -> tuple[RunSpec, Path]:
    """Return a run's training, or what it analyses, and its results."""
    path = path.absolute()
    if not (path / "spec.json").is_file():
        raise ConfigError(
            f"{path} is not a run directory: expected one of those below runs/ in a results "
            "directory, with a spec.json"
        )
    spec, root = RunSpec.read(path / "spec.json"), path.resolve().parent.parent
    return (spec if spec.analysis is None else spec.first_stage() or spec), root


def load_model(
    run: str | Path, *, update: int | None = None, device: str | torch.device = "cpu"
) -> PositionEncodedRNN | VectorRNN:
    """Return the network of a run with the weights of a checkpoint.

    Args:
        run: The run's directory, `results/runs/<fingerprint>`; of an analysis the network is that
            of the training run that it analyses, which lies beside it, as a pretraining does.
        update: Which checkpoint; the newest if absent.
        device: Where the network lives.

    Raises:
        ConfigError: If it is no run's directory, or has no such checkpoint.
        CorruptError: If the checkpoint is damaged.
    """
    spec, root = read_run(Path(run))
    folder = RunDirectory(root, spec.fingerprint()).checkpoints
    saved = folder.updates()
    if not saved:
        raise ConfigError(f"{folder.path}: no checkpoints: none is written yet, or all are pruned")
    if update is not None and update not in saved:
        raise ConfigError(
            f"{folder.path}: no checkpoint of update {update}: expected one of {list(saved)}"
        )
    update = max(saved) if update is None else update
    arrays = folder.load(update).arrays
    model = build_stage(spec, root, torch.device(device)).model
    restore_weights(model, arrays, folder.path)
    set_strength(model, update, spec.training)
    return model
