"""Runners: where trials happen. The same specs give the same records under each of them."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import OnEvent, Runner, TrialEvent

if TYPE_CHECKING:
    from .inline import InlineRunner
    from .local import LocalRunner
    from .ray import RayRunner
    from .slurm import SlurmRunner
    from .stopping import Limits

__all__ = [
    "InlineRunner",
    "Limits",
    "LocalRunner",
    "OnEvent",
    "RayRunner",
    "Runner",
    "SlurmRunner",
    "TrialEvent",
]

__getattr__ = exports(
    __name__,
    {
        "InlineRunner": ".inline",
        "Limits": ".stopping",
        "LocalRunner": ".local",
        "RayRunner": ".ray",
        "SlurmRunner": ".slurm",
    },
)
