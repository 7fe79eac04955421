"""Is the GRU's gain Adam's, or that of trained token vectors?

`other_optimizers` near the setting of `who_needs_a_clock`, where the GRU's gain is clear.

Source: as there.
"""

from dataclasses import replace

from pernn.lab.runs import RunSpec

from . import other_optimizers
from .grids import SEEDS, first_seeds
from .temperature import DEMO_PACED, SMALL_PACED

FRESH = first_seeds(24)[8:]
"""Seeds of which nothing was known at this setting."""


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return other_optimizers.specs(DEMO_PACED, "gru", 8, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for a quarter of an hour on two cores."""
    base = {**SMALL_PACED, "training.iterations": 1_000}
    return other_optimizers.specs(base, "gru", 32, FRESH)


EXPERIMENT = replace(
    other_optimizers.EXPERIMENT,
    name="other_optimizers_gru",
    question="",  # The catalogue has it.
    scales={"demo": demo, "small": small},
    claims=other_optimizers.claims("gru"),
)
