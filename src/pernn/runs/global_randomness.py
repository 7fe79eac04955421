"""Global random generators while a part is built: seeded from the run, restored afterwards."""

import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from pernn.randomness import RandomStream, Split

UNTOLD = {"random"}
"""Checkers of types draw from it too, which decides no weight."""

_LOCK = threading.RLock()  # Checkpoints are analysed by threads, each of which builds a network.
_warned = set[tuple[str, str]]()


@contextmanager
def seeded_globals(
    seed: int,
    name: str,
    kind: str,
    device: torch.device,
    warn: Callable[[str], None] = warnings.warn,
) -> Iterator[None]:
    """Seed the global generators from the run while a part is built, and restore them afterwards.

    A part that draws from them instead of from the generator that it is handed is repeatable
    nevertheless; it is warned of once in a process.

    Args:
        seed: The run's.
        name: The part's place in the spec.
        kind: The part's kind.
        device: Where the run computes.
        warn: Told of a part that drew from them.
    """
    word = RandomStream(seed, f"weights/{name}/global", Split.WEIGHTS).seed_word()
    with _LOCK:
        generators = _generators(device)
        before = {library: get() for library, (get, _, _) in generators.items()}
        try:
            for _, reseed, _ in generators.values():
                reseed(word)
            seeded = {library: _plain(get()) for library, (get, _, _) in generators.items()}
            yield
            used = [
                library
                for library, (get, _, _) in generators.items()
                if library not in UNTOLD and _plain(get()) != seeded[library]
            ]
        finally:
            for library, (_, _, restore) in generators.items():
                restore(before[library])
    if used and (name, kind) not in _warned:
        _warned.add((name, kind))
        warn(
            f"{name} {kind!r} draws from the global generator of {' and '.join(used)} when it is "
            "built, not from the `generator` that it is handed: pernn seeds both, so runs repeat; "
            "draw from `generator`, for example by torch.nn.init, to end this warning"
        )


Access = tuple[Callable[[], Any], Callable[[int], Any], Callable[[Any], Any]]
"""Get the state, seed, set the state."""


def _generators(device: torch.device) -> dict[str, Access]:
    # It is others who use NumPy's legacy generator.
    legacy = np.random
    found: dict[str, Access] = {
        "torch": (torch.get_rng_state, torch.default_generator.manual_seed, torch.set_rng_state),
        "numpy": (legacy.get_state, lambda word: legacy.seed(word % 2**32), legacy.set_state),
        "random": (random.getstate, random.seed, random.setstate),
    }
    if device.type == "cuda":
        torch.cuda.init()
    if torch.cuda.is_initialized():
        cuda = torch.cuda
        found["torch.cuda"] = (cuda.get_rng_state_all, cuda.manual_seed_all, cuda.set_rng_state_all)
    return found


def _plain(state: Any) -> Any:
    """Make a state comparable."""
    if isinstance(state, torch.Tensor):
        return state.numpy().tobytes()
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return [_plain(part) for part in state] if isinstance(state, list | tuple) else state
