"""How a run is heard of while it lasts, and how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Listener = Callable[[int], bool]
"""Told the number of updates done after each, those of earlier stages included; returns false to
have the run stop there."""


@dataclass(frozen=True)
class Outcome:
    """How an execution ended.

    Attributes:
        status: `finished` now, `already done` before, or `stopped` with a checkpoint.
        result: The content of `result.json`; `None` if stopped.
    """

    status: Literal["finished", "already done", "stopped"]
    result: Mapping[str, Any] | None
