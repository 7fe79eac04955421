"""What a sweep has to survive: each scenario is a function of a folder and of how much of it."""

from collections.abc import Callable

from . import damage, every_call, fuzz, hostile, ray_cluster, sweeps
from .commands import Counts

NAMES = {
    every_call: ("every_call", "stopped_at_every_call"),
    sweeps: ("random_kills", "two_drivers", "stopped_workers", "stopped_host"),
    ray_cluster: ("ray_cluster",),
    damage: ("damaged_files", "damaged_results", "confounded", "foreign_versions", "full_disk",
             "read_only"),
    hostile: ("hostile_names", "hostile_specs", "links", "pickles"),
    fuzz: ("fuzz",),
}  # fmt: skip
SCENARIOS: dict[str, Callable[..., Counts]] = {
    name: getattr(module, name) for module, names in NAMES.items() for name in names
}
"""Called with an empty folder and counts; gives what was counted, or raises `AssertionError`."""
