"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import Pretraining, RunSpec, StabilityAnalysis

if TYPE_CHECKING:
    from .analysing import analyse, tabulate
    from .assembly import Trial, build
    from .cost import Cost, Work, estimate_cost, estimate_work, measure_bandwidth, measure_rate
    from .environment import describe_environment
    from .execution import execute, weights_digest
    from .footprint import Footprint, estimate_footprint
    from .outcome import Outcome
    from .pruning import Leftovers, delete_leftovers, find_leftovers, with_stages

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
    "delete_leftovers",
    "describe_environment",
    "estimate_cost",
    "estimate_footprint",
    "estimate_work",
    "execute",
    "find_leftovers",
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
        "delete_leftovers": ".pruning",
        "describe_environment": ".environment",
        "estimate_cost": ".cost",
        "estimate_footprint": ".footprint",
        "estimate_work": ".cost",
        "execute": ".execution",
        "find_leftovers": ".pruning",
        "measure_bandwidth": ".cost",
        "measure_rate": ".cost",
        "tabulate": ".analysing",
        "weights_digest": ".execution",
        "with_stages": ".pruning",
    },
)
