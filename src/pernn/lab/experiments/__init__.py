"""Experiments, one per question of the paper.

Adding one takes a constant of its name in a module, and an entry of `CATALOGUE`.

Other packages add theirs by an entry point of the group `pernn.experiments`.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .catalogue import (
    CATALOGUE as CATALOGUE,
    SINGLE as SINGLE,
    Entry as Entry,
    experiment_names as experiment_names,
    registered as registered,
)

if TYPE_CHECKING:
    from .comparisons import LABELS as LABELS
    from .experiment import (
        Columns as Columns,
        Experiment as Experiment,
        FigureLayout as FigureLayout,
        find_experiment as find_experiment,
        Rule as Rule,
        names_of as names_of,
    )
    from .expansion import ADDED as ADDED, trials as trials, with_axes as with_axes
    from .grids import first_seeds as first_seeds
    from .predicates import (
        PLANNED as PLANNED,
        AtLeast as AtLeast,
        AtMost as AtMost,
        Cells as Cells,
        Choice as Choice,
        Claim as Claim,
        Contrast as Contrast,
        Differs as Differs,
        DiffersMore as DiffersMore,
        Equivalent as Equivalent,
        EveryTrial as EveryTrial,
        Grows as Grows,
        LEVELS as LEVELS,
        LimitNear as LimitNear,
        Place as Place,
        Predicate as Predicate,
        Sooner as Sooner,
        Where as Where,
        is_pace as is_pace,
        pace_column as pace_column,
    )
    from .tuning import (
        TUNED as TUNED,
        TUNED_CLAIM as TUNED_CLAIM,
        Tuning as Tuning,
        read_grid as read_grid,
        tune as tune,
    )

__getattr__ = exports(__name__)
