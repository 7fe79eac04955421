"""Runners: where trials happen. The same specs give the same records under each of them."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import ENDS as ENDS, Hear as Hear, Runner as Runner, TrialEvent as TrialEvent

if TYPE_CHECKING:
    from .capacity import (
        Capacity as Capacity,
        check_cores as check_cores,
        measure_capacity as measure_capacity,
        show_bytes as show_bytes,
    )
    from .inline import InlineRunner as InlineRunner
    from .leaving import Limits as Limits
    from .local import LocalRunner as LocalRunner
    from .ray import RayRunner as RayRunner
    from .slurm import SlurmRunner as SlurmRunner

__getattr__ = exports(__name__)
