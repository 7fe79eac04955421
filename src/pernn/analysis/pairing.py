"""Pairs of sequences that share the target token, and what stands before it, but nothing after."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from pernn.errors import ConfigError
from pernn.randomness import RandomStream, Split, integers
from pernn.tasks import DelayedAddition as Addition
from pernn.tasks import DualFrequency, Reverse, Same, SyntheticTask, Uniform

CLASSES = ("Frequent", "Rare")
ALL = "all"
"""The one condition of a task whose ids are all alike."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of sequences, and the two steps between which gradients are compared.

    Attributes:
        first: Tokens of the first sequence of each pair.
        second: Tokens of the second, equal to the first up to step `source`.
        num_queries: Steps after them whose input is the query row.
        source: Step of the target token, counted from 1: gradients are taken with respect to the
            latent state after it.
        target: Step at which the target token is to be given back: gradients are those of the
            output of this step.
        conditions: Class of the target, class of the disturbants.
        condition: Which of the conditions each pair belongs to.

    Raises:
        ConfigError: If the two sides, or the steps, do not fit each other.
    """

    first: Int64[np.ndarray, "pairs input_time"]
    second: Int64[np.ndarray, "pairs input_time"]
    num_queries: int
    source: int
    target: int
    conditions: tuple[tuple[str, str], ...]
    condition: Int64[np.ndarray, " pairs"]

    def __post_init__(self) -> None:
        num_steps = self.first.shape[1] + self.num_queries
        if not 1 <= self.source < self.target <= num_steps:
            raise ConfigError(
                f"source and target must be steps 1 … {num_steps}, the source before the target; "
                f"got {self.source} and {self.target}"
            )
        shared = slice(0, self.source)
        if not np.array_equal(self.first[:, shared], self.second[:, shared]):
            raise ConfigError(f"the sequences of a pair must share their first {self.source} ids")

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.first)


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
        ConfigError: If the task has no such target: see `target_step`.

    Examples:
        >>> from pernn.tasks import DualFrequencyConfig
        >>> task = DualFrequencyConfig(vocab_size=8, length=4).build()
        >>> pairs = dual_frequency_pairs(task, seed=111, num_per_condition=2, source=3)
        >>> len(pairs), pairs.source, pairs.target
        (8, 3, 6)

    Source: Morita (2024), section 4.3 (versions 2 and 3); the prefix: version 5.
    """
    if num_per_condition < 1:
        raise ConfigError(f"num_per_condition must be at least 1, got {num_per_condition}")
    target, length = target_step(task, source), task.longest
    grid, conditions, num_ids = _conditions(task)
    stream = RandomStream(seed, task.name, Split.ANALYSIS)
    num_after = length - source
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for lane, (aim, other) in enumerate(grid):
        words = stream.words(source, num_per_condition * (length + num_after), lane)
        ids = integers(words.reshape(num_per_condition, -1), num_ids) + num_ids * other
        ids[:, source - 1] += num_ids * (aim - other)
        shared, *ends = np.split(ids, [source, length], axis=1)
        for side, end in zip(sides, ends, strict=True):
            inputs = np.concatenate([shared, end], axis=1)
            side.append(np.ascontiguousarray(task.batch(inputs).tokens))
    first, second = (np.concatenate(side) for side in sides)
    return Pairs(
        first=first,
        second=second,
        num_queries=task.num_queries,
        source=source,
        target=target,
        conditions=conditions,
        condition=np.repeat(np.arange(len(grid)), num_per_condition),
    )


def _conditions(
    task: SyntheticTask,
) -> tuple[list[tuple[int, int]], tuple[tuple[str, str], ...], int]:
    """Return classes of target and disturbants by number and by name, and the size of a class."""
    if isinstance(task.source, DualFrequency):
        grid = [(aim, other) for aim in range(2) for other in range(2)]
        names = tuple((CLASSES[aim], CLASSES[other]) for aim, other in grid)
        return grid, names, task.vocab_size // 2
    if isinstance(task.source, Uniform):
        return [(0, 0)], ((ALL, ALL),), task.vocab_size
    raise ConfigError(
        f"disturbants are drawn uniformly from a class of ids; {type(task.source).__name__} "
        "allows no such sequences"
    )


def target_step(task: SyntheticTask, source: int) -> int:
    """Return at which step the token of step `source` is to be given back, both counted from 1.

    Raises:
        ConfigError: If that depends on the sequence, there is no such step, or the outputs are fed
            back: then gradients pass through an argmax.
    """
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
