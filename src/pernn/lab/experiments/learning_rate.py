"""Does the encoding help at each network's best peak learning rate?

The published runs give every network the same rate. Here several rates are tried; for each core and
encoding the best is chosen on validation seeds, and the choices are compared on the others, beside
the comparisons at equal rates.

In `tuned_vocabulary_size` validation seeds choose among seven rates for each core, vocabulary and
encoding. The other seeds need no trial at another rate: claims look at no others.

Source: ours; the rate is that of Morita (2024), version 3, section 4.2; section 6 of
docs/evidence/plan.md.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pernn.lab.runs import RunSpec

from .comparisons import ACCURACY, PLACE, encoding_helps, lay_out
from .experiment import Experiment
from .grids import MASTERY, RATE, SMALL, VALIDATION_SEEDS, VOCABULARY, brief, cores, grids
from .predicates import Choice, Claim, qualified, with_primary
from .tuning import judged_at_best, over_values

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
"""Peak rates that are tried: the published one, and upwards, as smaller networks take more."""
KINDS = ("elman", "gru", "lstm")


def _at_rates(
    specs: Callable[[], tuple[RunSpec, ...]], rates: tuple[float, ...]
) -> tuple[RunSpec, ...]:
    """Return a grid at several rates, with validation seeds last; seeds stay outermost."""
    final = specs()
    more = (spec.override({"seed": seed}) for seed in VALIDATION_SEEDS for spec in final)
    every = dict.fromkeys((*final, *more))
    return tuple(spec.override({RATE: rate}) for spec in every for rate in rates)


def _at_rate(claim: Claim, rate: float) -> Claim:
    """Return a claim about conditions at one rate, whose validation seeds take no part."""
    words = f", both networks at a peak rate of {rate:g} (our check)"
    choice = Choice(RATE, ACCURACY, VALIDATION_SEEDS, rate)
    return qualified(claim, f"_at_{rate:g}", words, choice=choice, primary=False)


FIGURE = lay_out(VOCABULARY, ACCURACY, x_base=2)
HELPS = [encoding_helps(core, PLACE if core != "elman" else PLACE[1]) for core in KINDS]
UNTUNED = grids(
    {},
    # Minutes, and two hours, on two CPU cores.
    demo=(brief(length=16, size=128, updates=500), cores(gru=16)),
    small=(SMALL, cores(elman=8, gru=64, lstm=192)),
    # The published sizes where vanilla networks fall short.
    paper=({}, cores(elman=8, gru=64, lstm=1_024)),
)
LEARNING_RATE = Experiment(
    name="learning_rate",
    scales={scale: partial(_at_rates, specs, RATES) for scale, specs in UNTUNED.items()},
    claims=tuple(
        found
        for claim in with_primary(HELPS, "encoding_helps_gru", "encoding_helps_lstm")
        for found in (
            judged_at_best(claim, RATE, ACCURACY),
            *(_at_rate(claim, rate) for rate in RATES),
        )
    ),
    figure=over_values(FIGURE, RATE, FIGURE.panels),
)

VOCABULARIES = {"gru": (32, 64, 128), "lstm": (128, 256, 512)}
TRIED = {
    # The start of the training, which tests no claim.
    "demo": (0.0035, 0.01),
    # A factor of 1.4 apart, around the best two of `learning_rate`.
    "small": (0.0018, 0.0025, 0.0035, 0.005, 0.007, 0.01, 0.014),
}
NETWORKS = grids(
    {},
    demo=(brief(length=8, size=64, updates=300), cores(**VOCABULARIES)),
    # The networks of `vocabulary_size`; a night on two CPU cores, at chosen rates.
    small=(MASTERY, cores(**VOCABULARIES)),
)


def _helps(core: str) -> Claim:
    plain = judged_at_best(encoding_helps(core, PLACE), RATE, ACCURACY)
    predicate = replace(plain.predicate, required=VOCABULARIES[core])
    return replace(plain, predicate=predicate, primary=True)


OVER_RATES = over_values(FIGURE, RATE, ("core.kind", VOCABULARY))

TUNED_VOCABULARY_SIZE = Experiment(
    name="tuned_vocabulary_size",
    scales={scale: partial(_at_rates, specs, TRIED[scale]) for scale, specs in NETWORKS.items()},
    claims=tuple(_helps(core) for core in VOCABULARIES),
    figure=OVER_RATES,
    more_figures={
        # One row of three panels; each of them tells the difference.
        "headline": replace(OVER_RATES, contrast=None, where={"core.kind": "lstm"})
    },
    labels={"headline": "Reversing 8 random tokens, at each peak learning rate"},
)
