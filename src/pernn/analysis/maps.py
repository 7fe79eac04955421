"""Gradient stability by the target's place in the input."""

from collections.abc import Iterable
from typing import Any

from pernn.tasks import SyntheticTask

from .linearisation import Projecting
from .pairing import dual_frequency_pairs
from .stability import gradient_stability


def stability_map(
    model: Projecting,
    task: SyntheticTask,
    seed: int,
    positions: Iterable[int] | None = None,
    num_per_condition: int = 256,
    *,
    memory_budget: int = 2**29,
) -> dict[str, list[Any]]:
    """Measure the stability for targets at several steps t, each against the step that answers.

    Nothing is shared between positions: each has pairs of its own, whose prefix ends at t, and
    another step to answer at. A pair costs 2L − 2t + 1 steps: all positions of an input together
    cost as much as L/2 times the first one.

    Args:
        model: As in `gradient_stability`.
        task: As in `dual_frequency_pairs`.
        seed: Which pairs.
        positions: Steps t of the target, counted from 1; all of the input if absent.
        num_per_condition: Pairs per condition and position.
        memory_budget: Bytes that may be worked with.

    Returns:
        The tables of `Stability` one under another, with a column `position`.

    Raises:
        ConfigError: As in the two.
    """
    steps = range(1, task.num_scored + 1) if positions is None else positions
    table: dict[str, list[Any]] = {}
    for position in steps:
        pairs = dual_frequency_pairs(
            task, seed, num_per_condition=num_per_condition, source=position
        )
        part = gradient_stability(model, pairs, memory_budget=memory_budget).table()
        part["position"] = [position] * len(part["condition"])
        for column, values in part.items():
            table.setdefault(column, []).extend(values)
    return table
