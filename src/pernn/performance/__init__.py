"""How fast training is: against plain scripts, against the machine's limits, phase by phase."""

from typing import TYPE_CHECKING

from pernn.lazy import exports


if TYPE_CHECKING:
    from .cases import Case as Case, find_cases as find_cases
    from .ceilings import Ceilings as Ceilings, measure_ceilings as measure_ceilings
    from .comparison import (
        SHAPES as SHAPES,
        Comparison as Comparison,
        compare as compare,
        make_spec as make_spec,
    )
    from .phases import PHASES as PHASES, Phase as Phase, Stopwatch as Stopwatch
    from .processors import class_table as class_table, compare_classes as compare_classes

__getattr__ = exports(__name__)
