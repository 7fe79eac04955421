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
    from .versions import describe_commit, describe_versions

__all__ = [
    "Cost",
    "Footprint",
    "Outcome",
    "Pretraining",
    "RunSpec",
    "StabilityAnalysis",
    "Trial",
    "Work",
    "analyse",
    "build",
    "describe_commit",
    "describe_environment",
    "describe_versions",
    "estimate_cost",
    "estimate_footprint",
    "estimate_work",
    "execute",
    "measure_bandwidth",
    "measure_rate",
    "tabulate",
    "weights_digest",
]

__getattr__ = exports(
    __name__,
    {
        "Cost": ".cost",
        "Footprint": ".footprint",
        "Outcome": ".outcome",
        "Trial": ".assembly",
        "Work": ".cost",
        "analyse": ".analysing",
        "build": ".assembly",
        "describe_commit": ".versions",
        "describe_environment": ".environment",
        "describe_versions": ".versions",
        "estimate_cost": ".cost",
        "estimate_footprint": ".footprint",
        "estimate_work": ".cost",
        "execute": ".execution",
        "measure_bandwidth": ".cost",
        "measure_rate": ".cost",
        "tabulate": ".analysing",
        "weights_digest": ".execution",
    },
)
