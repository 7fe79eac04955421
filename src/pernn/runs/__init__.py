"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import Pretraining, RunSpec, StabilityAnalysis

if TYPE_CHECKING:
    from .active import weights_digest
    from .analysing import analyse, tabulate
    from .assembly import Trial, build
    from .cost import Cost, Work, estimate_cost, estimate_work, measure_bandwidth, measure_rate
    from .environment import describe_environment
    from .execution import execute
    from .footprint import Footprint, estimate_footprint
    from .loading import load_model
    from .outcome import Outcome
    from .parts import changed_parts
    from .pruning import Leftovers, delete_leftovers, find_leftovers, with_stages
    from .versions import describe_commit, describe_versions

__all__ = [
    "Cost",
    "Footprint",
    "Leftovers",
    "Outcome",
    "Pretraining",
    "RunSpec",
    "StabilityAnalysis",
    "Trial",
    "Work",
    "analyse",
    "build",
    "changed_parts",
    "delete_leftovers",
    "describe_commit",
    "describe_environment",
    "describe_versions",
    "estimate_cost",
    "estimate_footprint",
    "estimate_work",
    "execute",
    "find_leftovers",
    "load_model",
    "measure_bandwidth",
    "measure_rate",
    "tabulate",
    "weights_digest",
    "with_stages",
]

__getattr__ = exports(
    __name__,
    {
        "Cost": ".cost",
        "Footprint": ".footprint",
        "Leftovers": ".pruning",
        "Outcome": ".outcome",
        "Trial": ".assembly",
        "Work": ".cost",
        "analyse": ".analysing",
        "build": ".assembly",
        "changed_parts": ".parts",
        "delete_leftovers": ".pruning",
        "describe_commit": ".versions",
        "describe_environment": ".environment",
        "describe_versions": ".versions",
        "estimate_cost": ".cost",
        "estimate_footprint": ".footprint",
        "estimate_work": ".cost",
        "execute": ".execution",
        "find_leftovers": ".pruning",
        "load_model": ".loading",
        "measure_bandwidth": ".cost",
        "measure_rate": ".cost",
        "tabulate": ".analysing",
        "weights_digest": ".active",
        "with_stages": ".pruning",
    },
)
