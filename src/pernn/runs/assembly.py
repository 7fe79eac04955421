"""Spec → live objects: the one file that knows every part."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from pernn.interfaces import BatchStream
from pernn.models import AutoregressiveRNN, PositionEncodedRNN, VectorRNN
from pernn.randomness import RandomStream, Split
from pernn.training import PRESETS, Preset

from .global_randomness import seeded_globals
from .spec import RunSpec


@dataclass(frozen=True)
class Trial:
    """What a spec describes, ready to train.

    Attributes:
        model: The network with its initial weights, on the device.
        stream: Its data.
        preset: The settings of its preset.
    """

    model: PositionEncodedRNN | VectorRNN
    stream: BatchStream
    preset: Preset


def build(
    spec: RunSpec, device: torch.device, warn: Callable[[str], None] = warnings.warn
) -> Trial:
    """Make a trial's parts; each draws its weights from a stream of its own.

    Networks of one seed that share a part (embedding, output layer) thus share its initial weights:
    trials are paired in weights as well as in data. Weights are drawn on the CPU, so they do not
    depend on the device. A part that draws from a global generator instead finds it seeded, and
    `warn` is told.
    """
    preset = PRESETS[spec.preset]

    def seeded(part: str) -> AbstractContextManager[None]:
        return seeded_globals(spec.seed, part, getattr(spec, part).kind, device, warn)

    with seeded("task"):
        task = spec.build_task()
        stream = task.stream(spec.seed)
    with seeded("encoding"):
        generator = _generator(spec, "encoding")
        encoding = spec.encoding.build(task.num_steps, preset.layout, generator)
    # A task may say which network it is for; most do not.
    network = getattr(task, "network", "queried")
    # The phases' vectors are as wide as a token's.
    phase_size = spec.embedding_size if network == "autoregressive" else 0
    joined_size = encoding.joined_size(spec.embedding_size) + phase_size
    with seeded("core"):
        core = spec.core.build(joined_size, _generator(spec, "core"))
    parts = task.vocab_size, core, encoding
    width, embedding = spec.embedding_size, _generator(spec, "embedding")
    model: PositionEncodedRNN | VectorRNN
    if network == "vector":
        model = VectorRNN(*parts, embedding_size=width, generator=embedding)
    else:
        kind = AutoregressiveRNN if network == "autoregressive" else PositionEncodedRNN
        rows = len(task.extra_rows)
        model = kind(*parts, embedding_size=width, num_extra_rows=rows, generator=embedding)
    if isinstance(model, AutoregressiveRNN):
        model.reset_phase(_generator(spec, "phase"))
    model.reset_output_layer(_generator(spec, "readout"))
    return Trial(model.to(device), stream, preset)


def _generator(spec: RunSpec, part: str) -> torch.Generator:
    """Make a generator of a part's initial weights from the trial's seed."""
    stream = RandomStream(spec.seed, f"weights/{part}", Split.WEIGHTS)
    return torch.Generator().manual_seed(stream.seed_word())
