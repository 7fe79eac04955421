"""Runners: where trials happen. The same specs give the same records under each of them."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import OnEvent, Runner, TrialEvent

if TYPE_CHECKING:
    from .capacity import Capacity, check_cores, measure_capacity, show_bytes
    from .inline import InlineRunner
    from .local import LocalRunner
    from .ray import RayRunner
    from .slurm import SlurmRunner
    from .stopping import Limits

__all__ = [
    "Capacity",
    "InlineRunner",
    "Limits",
    "LocalRunner",
    "OnEvent",
    "RayRunner",
    "Runner",
    "SlurmRunner",
    "TrialEvent",
    "check_cores",
    "measure_capacity",
    "show_bytes",
]

__getattr__ = exports(
    __name__,
    {
        "Capacity": ".capacity",
        "check_cores": ".capacity",
        "measure_capacity": ".capacity",
        "show_bytes": ".capacity",
        "InlineRunner": ".inline",
        "Limits": ".stopping",
        "LocalRunner": ".local",
        "RayRunner": ".ray",
        "SlurmRunner": ".slurm",
    },
)
