"""What a sweep has to survive: each scenario is a function of a folder and of how much of it."""

from collections.abc import Callable

from . import sweeps

Scenario = Callable[..., dict[str, int | float | str]]
"""Called with an empty folder and counts; gives what was counted, or raises `AssertionError`."""

SCENARIOS: dict[str, Scenario] = {
    "random kills": sweeps.random_kills,
    "two drivers": sweeps.two_drivers,
    "stopped workers": sweeps.stopped_workers,
    "stopped host": sweeps.stopped_host,
}
