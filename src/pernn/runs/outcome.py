"""What is reported of a run while it lasts, and how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

OnUpdate = Callable[[int], bool]
"""Told the number of updates done after each, those of earlier stages included; returns false to
have the run stop there."""


@dataclass(frozen=True)
class Outcome:
    """How an execution ended.

    Attributes:
        state: `finished`, or `stopped` with a checkpoint.
        result: The content of `result.json`; `None` if stopped.
        is_new: Whether this execution did something; false if the run was finished before.
    """

    state: Literal["finished", "stopped"]
    result: Mapping[str, Any] | None
    is_new: bool = True
