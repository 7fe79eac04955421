"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import Pretraining, RunSpec, StabilityAnalysis

if TYPE_CHECKING:
    from .active import weights_digest
    from .analysing import analyse, tabulate
    from .assembly import Trial, build
    from .environment import describe_environment
    from .estimates import Estimate, estimate, show_bytes, show_hours
    from .execution import execute
    from .loading import load_model
    from .outcome import Outcome
    from .parts import changed_parts
    from .pruning import Leftovers, delete_leftovers, find_leftovers, with_stages
    from .versions import describe_commit, describe_versions

__all__ = [
    "Estimate",
    "Leftovers",
    "Outcome",
    "Pretraining",
    "RunSpec",
    "StabilityAnalysis",
    "Trial",
    "analyse",
    "build",
    "changed_parts",
    "delete_leftovers",
    "describe_commit",
    "describe_environment",
    "describe_versions",
    "estimate",
    "execute",
    "find_leftovers",
    "load_model",
    "show_bytes",
    "show_hours",
    "tabulate",
    "weights_digest",
    "with_stages",
]

__getattr__ = exports(
    __name__,
    {
        "Estimate": ".estimates",
        "Leftovers": ".pruning",
        "Outcome": ".outcome",
        "Trial": ".assembly",
        "analyse": ".analysing",
        "build": ".assembly",
        "changed_parts": ".parts",
        "delete_leftovers": ".pruning",
        "describe_commit": ".versions",
        "describe_environment": ".environment",
        "describe_versions": ".versions",
        "estimate": ".estimates",
        "execute": ".execution",
        "find_leftovers": ".pruning",
        "load_model": ".loading",
        "show_bytes": ".estimates",
        "show_hours": ".estimates",
        "tabulate": ".analysing",
        "weights_digest": ".active",
        "with_stages": ".pruning",
    },
)
