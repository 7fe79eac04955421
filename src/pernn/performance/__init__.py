"""How fast training is: against plain scripts, against the machine's limits, phase by phase."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .ceilings import Ceilings, measure_ceilings
    from .comparison import SHAPES, Comparison, compare, make_spec
    from .phases import PHASES, Phase
    from .processors import class_table, measure_classes

__all__ = [
    "PHASES",
    "SHAPES",
    "Ceilings",
    "Comparison",
    "Phase",
    "class_table",
    "compare",
    "make_spec",
    "measure_ceilings",
    "measure_classes",
]

__getattr__ = exports(
    __name__,
    {
        "PHASES": ".phases",
        "SHAPES": ".comparison",
        "Ceilings": ".ceilings",
        "Comparison": ".comparison",
        "Phase": ".phases",
        "class_table": ".processors",
        "compare": ".comparison",
        "make_spec": ".comparison",
        "measure_ceilings": ".ceilings",
        "measure_classes": ".processors",
    },
)
