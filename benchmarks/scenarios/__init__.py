"""What a sweep has to survive: each scenario is a function of a folder and of how much of it."""

from collections.abc import Callable

from .commands import Counts
from .damage import (
    confounded,
    damaged_files,
    damaged_results,
    foreign_versions,
    full_disk,
    read_only,
)
from .every_call import every_call, stopped_at_every_call
from .fuzz import fuzz
from .hostile import hostile_names, hostile_specs, links, pickles
from .ray_cluster import ray_cluster
from .strangers import foreign_parts
from .sweeps import random_kills, stopped_host, stopped_workers, two_drivers

Scenario = Callable[..., Counts]
"""Called with an empty folder and counts; gives what was counted, or raises `AssertionError`."""

SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        every_call,
        stopped_at_every_call,
        random_kills,
        two_drivers,
        stopped_workers,
        stopped_host,
        ray_cluster,
        damaged_files,
        damaged_results,
        confounded,
        foreign_versions,
        full_disk,
        read_only,
        hostile_names,
        hostile_specs,
        links,
        pickles,
        foreign_parts,
        fuzz,
    )
}
