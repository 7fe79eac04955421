"""Experiments: a module per question of the paper. Adding one: a module, a `CATALOGUE` entry.

Other packages add theirs by an entry point of the group `pernn.experiments`.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .catalogue import CATALOGUE, Entry, experiment_names, registered

if TYPE_CHECKING:
    from .experiment import Columns, Experiment, FigureLayout, find_experiment, trials
    from .predicates import (
        PLANNED,
        AtLeast,
        AtMost,
        Cells,
        Choice,
        Claim,
        Contrast,
        Differs,
        DiffersMore,
        Equivalent,
        EveryTrial,
        Grows,
        LimitNear,
        Place,
        Predicate,
        Where,
    )

_EXPERIMENT = ("Columns", "Experiment", "FigureLayout", "find_experiment", "trials")

__all__ = [
    "CATALOGUE",
    "PLANNED",
    "AtLeast",
    "AtMost",
    "Cells",
    "Choice",
    "Claim",
    "Columns",
    "Contrast",
    "Differs",
    "DiffersMore",
    "Entry",
    "Equivalent",
    "EveryTrial",
    "Experiment",
    "FigureLayout",
    "Grows",
    "LimitNear",
    "Place",
    "Predicate",
    "Where",
    "experiment_names",
    "find_experiment",
    "registered",
    "trials",
]

__getattr__ = exports(
    __name__,
    {
        name: ".experiment" if name in _EXPERIMENT else ".predicates"
        for name in __all__
        if name not in globals()
    },
)
