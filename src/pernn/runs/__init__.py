"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import RunSpec

if TYPE_CHECKING:
    from .assembly import Trial, build
    from .cost import Cost, estimate_cost, measure_rate
    from .environment import describe_environment
    from .execution import Outcome, execute, weights_digest

__all__ = [
    "Cost",
    "Outcome",
    "RunSpec",
    "Trial",
    "build",
    "describe_environment",
    "estimate_cost",
    "execute",
    "measure_rate",
    "weights_digest",
]

__getattr__ = exports(
    __name__,
    {
        "Cost": ".cost",
        "Outcome": ".execution",
        "Trial": ".assembly",
        "build": ".assembly",
        "describe_environment": ".environment",
        "estimate_cost": ".cost",
        "execute": ".execution",
        "measure_rate": ".cost",
        "weights_digest": ".execution",
    },
)
