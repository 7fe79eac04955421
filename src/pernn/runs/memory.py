"""What cannot fit into this machine, refused before any of it is allocated."""

import torch

from pernn.errors import MachineError
from pernn.store import physical_memory

from .spec import RunSpec

WORD = 4
"""Bytes of a number."""
INDEX = 8
"""Bytes of an id."""


class TooLargeError(MachineError):
    """A trial needs more memory than this machine has."""


def least_bytes(spec: RunSpec, device: torch.device) -> int:
    """Return bytes of memory that a trial cannot do without, a lower bound.

    Counted are weights with both of Adam's moments (a checkpoint holds them all), ids of one batch
    and of the held-out sequences, and on the CPU the hidden states of one batch or piece.
    """
    task, core = spec.build_task(), spec.core
    hidden, batch = core.hidden_size, spec.training.batch_size
    recurrent = core.num_layers * hidden * hidden
    weights = task.vocab_size * (spec.embedding_size + hidden) + recurrent
    held_out = getattr(spec.task, "num_held_out", 0)
    ids = (batch + held_out) * task.num_steps
    piece = spec.training.micro_batch or batch
    states = piece * task.num_steps * hidden if device.type == "cpu" else 0
    return WORD * (3 * weights + states) + INDEX * ids


def check_memory(spec: RunSpec, device: torch.device) -> None:
    """Refuse a trial that needs more than there is.

    Raises:
        TooLargeError: If the least it needs is more than the memory of this machine.
    """
    needed, there = least_bytes(spec, device), physical_memory()
    if needed > there:
        raise TooLargeError(
            f"{spec.label} needs at least {needed / 2**30:,.1f} GiB of memory, this machine has "
            f"{there / 2**30:,.1f}: choose smaller sizes"
        )
