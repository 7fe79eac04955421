"""Runners: where trials happen. The same specs give the same records under each of them."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .runner import ENDS, Hear, Runner, TrialEvent

if TYPE_CHECKING:
    from .inline import InlineRunner
    from .leaving import Limits
    from .local import LocalRunner

__all__ = ["ENDS", "Hear", "InlineRunner", "Limits", "LocalRunner", "Runner", "TrialEvent"]

__getattr__ = exports(
    __name__, {"InlineRunner": ".inline", "Limits": ".leaving", "LocalRunner": ".local"}
)
