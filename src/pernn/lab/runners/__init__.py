"""Runners, which give the same records for the same specs."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import Limits as Limits, OnEvent as OnEvent, Runner as Runner, TrialEvent as TrialEvent

if TYPE_CHECKING:
    from .local import LocalRunner as LocalRunner, num_cores as num_cores
    from .ray import RayRunner as RayRunner, require_ray as require_ray
    from .schedule import InlineRunner as InlineRunner

__getattr__ = exports(__name__)
