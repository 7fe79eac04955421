"""Runners: where trials happen. The same specs give the same records under each of them."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import OnEvent as OnEvent, Runner as Runner, TrialEvent as TrialEvent

if TYPE_CHECKING:
    from .inline import InlineRunner as InlineRunner
    from .local import LocalRunner as LocalRunner
    from .ray import RayRunner as RayRunner
    from .slurm import SlurmRunner as SlurmRunner
    from .stopping import Limits as Limits

__getattr__ = exports(__name__)
