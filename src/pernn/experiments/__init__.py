"""Experiments: a module per question of the paper. Adding one: a module, a `CATALOGUE` entry.

Other packages add theirs by an entry point of the group `pernn.experiments`.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .catalogue import CATALOGUE, Entry, experiment_names, registered

if TYPE_CHECKING:
    from .experiment import (
        AtLeast,
        AtMost,
        Claim,
        Columns,
        Contrast,
        Differs,
        Experiment,
        FigureLayout,
        Grows,
        LimitNear,
        Predicate,
        find_experiment,
        trials,
    )

__all__ = [
    "CATALOGUE",
    "AtLeast",
    "AtMost",
    "Claim",
    "Columns",
    "Contrast",
    "Differs",
    "Entry",
    "Experiment",
    "FigureLayout",
    "Grows",
    "LimitNear",
    "Predicate",
    "experiment_names",
    "find_experiment",
    "registered",
    "trials",
]

__getattr__ = exports(
    __name__,
    {name: ".experiment" for name in __all__ if name not in globals()},
)
