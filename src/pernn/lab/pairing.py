"""Pairs of a task's sequences for the analysis of gradients."""

from itertools import product
from typing import Any

import numpy as np

from pernn.analysis import ALL, Pairs, Projecting, gradient_stability
from pernn.errors import ConfigError
from pernn.lab.tasks import DelayedAddition as Addition
from pernn.lab.tasks import DualFrequency, Reverse, Same, SyntheticTask, Uniform
from pernn.randomness import RandomStream, Split, integers

CLASSES = ("Frequent", "Rare")


def dual_frequency_pairs(
    task: SyntheticTask, seed: int, *, num_per_condition: int = 256, source: int = 1
) -> Pairs:
    """Draw pairs for {Frequent, Rare} target × {Frequent, Rare} disturbants.

    The tokens before the target are disturbants too, shared by both sequences of a pair. Every id
    is uniform in its class. A task of uniform ids has one condition, `all`.

    Args:
        task: Which ids there are, and what is to be answered when.
        seed: Which pairs. A pair depends on the seed, the task's name, `source`, its condition and
            its number in the condition: with a smaller `num_per_condition`, fewer of the same.
        num_per_condition: Pairs of each condition.
        source: Step of the target token, counted from 1.

    Returns:
        The pairs, one condition after another.

    Raises:
        ConfigError: If the task has no such target (see `target_step`), or there are no pairs.

    Examples:
        >>> from pernn.lab.tasks import DualFrequencyConfig
        >>> task = DualFrequencyConfig(vocab_size=8, length=4).build()
        >>> pairs = dual_frequency_pairs(task, seed=111, num_per_condition=2, source=3)
        >>> len(pairs), pairs.source, pairs.target
        (8, 3, 6)

    Source: Morita (2024), section 4.3 (versions 2 and 3); the prefix: version 5.
    """
    if num_per_condition < 1:
        raise ConfigError(
            f"num_per_condition is invalid: expected 1 or more, got {num_per_condition}"
        )
    target, length = target_step(task, source), task.longest
    classes, num_ids = _classes(task)
    grid = [*product(range(len(classes)), repeat=2)]
    stream = RandomStream(seed, task.name, Split.ANALYSIS)
    num_after = length - source
    inputs = []
    for lane, (aim, other) in enumerate(grid):
        words = stream.words(source, num_per_condition * (length + num_after), lane)
        ids = integers(words.reshape(num_per_condition, -1), num_ids) + num_ids * other
        ids[:, source - 1] += num_ids * (aim - other)
        inputs.append(ids)
    shared, *ends = np.split(np.concatenate(inputs), [source, length], axis=1)
    first, second = (
        np.ascontiguousarray(task.batch(np.concatenate([shared, end], axis=1)).tokens)
        for end in ends
    )
    return Pairs(
        first=first,
        second=second,
        num_queries=task.num_queries,
        source=source,
        target=target,
        conditions=tuple(product(classes, classes)),
        condition=np.repeat(np.arange(len(grid)), num_per_condition),
    )


def _classes(task: SyntheticTask) -> tuple[tuple[str, ...], int]:
    """Return the classes of ids, and how many ids each has."""
    if isinstance(task.source, DualFrequency):
        return CLASSES, task.vocab_size // 2
    if isinstance(task.source, Uniform):
        return (ALL,), task.vocab_size
    raise ConfigError(
        f"disturbants are drawn uniformly from a class of ids; {type(task.source).__name__} "
        "allows no such sequences"
    )


def target_step(task: SyntheticTask, source: int) -> int:
    """Return the step that must return token `source`, both from 1."""
    if len(task.length.possible) > 1 or task.network != "queried":
        raise ConfigError(
            "pairs are made of sequences of one length that are answered without feedback; "
            f"got {task.name!r}"
        )
    if isinstance(task.rule, Reverse | Addition):
        target = task.num_steps - source + 1
    elif isinstance(task.rule, Same):
        target = task.num_steps - task.num_scored + source
    else:
        raise ConfigError(
            "rule is invalid: expected one that returns a token at a step which does not depend on "
            f"the other tokens, got {type(task.rule).__name__}"
        )
    if not 1 <= source <= task.num_scored:
        raise ConfigError(f"source must be a step 1 … {task.num_scored}, got {source}")
    return target


def stability_map(
    model: Projecting,
    task: SyntheticTask,
    seed: int,
    num_per_condition: int = 256,
    *,
    memory_budget: int = 2**29,
) -> dict[str, list[Any]]:
    """Measure the stability for targets at each step.

    Nothing is shared between positions: each has pairs of its own, whose prefix ends at t, and
    another step to answer at. A pair costs 2L − 2t + 1 steps: all positions of an input together
    cost as much as L/2 times the first one.

    Args:
        model: As in `gradient_stability`.
        task: As in `dual_frequency_pairs`.
        seed: Which pairs.
        num_per_condition: Pairs per condition and position.
        memory_budget: Bytes that may be worked with.

    Returns:
        The tables of `Stability` one under another, with a column `position`.

    Raises:
        ConfigError: As in the two.
    """
    table: dict[str, list[Any]] = {}
    for position in range(1, task.num_scored + 1):
        pairs = dual_frequency_pairs(
            task, seed, num_per_condition=num_per_condition, source=position
        )
        part = gradient_stability(model, pairs, memory_budget=memory_budget).table()
        part["position"] = [position] * len(part["condition"])
        for column, values in part.items():
            table.setdefault(column, []).extend(values)
    return table
