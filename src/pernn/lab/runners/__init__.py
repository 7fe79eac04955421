"""Runners, which give the same records for the same specs."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .schedule import (
    InlineRunner as InlineRunner,
    Limits as Limits,
    OnEvent as OnEvent,
    Runner as Runner,
    TrialEvent as TrialEvent,
    num_cores as num_cores,
)

if TYPE_CHECKING:  # not at once: a child process runs `worker`, which they import
    from .local import LocalRunner as LocalRunner
    from .ray import RayRunner as RayRunner, require_ray as require_ray

__getattr__ = exports(__name__)
