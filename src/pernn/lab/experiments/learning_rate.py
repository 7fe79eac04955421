"""Does the encoding help at each network's best peak learning rate?

The published runs give every network the same rate. Here several rates are tried; for each core and
encoding the best is chosen on validation seeds, and the choices are compared on the others, beside
the comparisons at equal rates. `tuned` does so for any experiment.

Source: ours; the rate is that of Morita (2024), version 3, appendix D.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import LABELS, by_core, encoding_helps, labels
from .experiment import Columns, Experiment
from .grids import (
    DEMO_TRAINING,
    SMALL,
    SMALL_SEEDS,
    VALIDATION_SEEDS,
    Settings,
    encodings,
    grid,
    widths,
)
from .predicates import Choice, Claim, Place, with_primary
from .tuning import at_best, at_values, over_values

COLUMN = "training.learning_rate"
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
"""Peak rates that are tried: the published one, and upwards, as smaller networks take more."""
KINDS = ("elman", "gru", "lstm")
PLACE = (Place("v3", "section 2.1 and Fig. 2"), Place("v1", "section 4.1 and Fig. 2"))


def tuned(
    experiment: Experiment,
    name: str,
    claims: Iterable[str],
    rates: tuple[float, ...] = RATES,
    validation: tuple[int, ...] = VALIDATION_SEEDS,
    rows: Columns | None = None,
) -> Experiment:
    """Return an experiment, judged at each condition's best peak rate.

    Args:
        experiment: Any; its trials are run at every rate.
        name: That of the new experiment.
        claims: Names of claims that are carried over: each is judged at the best rate of each
            condition (`NAME_tuned`), and at each rate for all (`NAME_at_RATE`).
        rates: Peak rates.
        validation: Seeds whose held-out sequences choose; they take part in no comparison.
        rows: Column whose values get a block of rows each in the figure; needed where its panels
            and lines do not tell all conditions apart.

    Returns:
        An experiment whose figure has the rate on its horizontal axis.
    """
    layout = experiment.figure
    wanted = {claim.name: claim for claim in experiment.claims}
    chosen = [wanted[one] for one in claims]
    return replace(
        experiment,
        name=name,
        scales={
            scale: _at_rates(specs, rates, validation) for scale, specs in experiment.scales.items()
        },
        claims=tuple(
            one for claim in chosen for one in _claims(claim, layout.metrics[0], rates, validation)
        ),
        figure=over_values(layout, COLUMN, layout.panels, rows),
        labels={COLUMN: LABELS[COLUMN], **experiment.labels},
        more_figures={},
    )


def _at_rates(
    specs: Callable[[], tuple[RunSpec, ...]],
    rates: tuple[float, ...],
    validation: tuple[int, ...],
) -> Callable[[], tuple[RunSpec, ...]]:
    return lambda: at_values(specs(), COLUMN, rates, validation)


def _claims(
    claim: Claim, metric: str, rates: tuple[float, ...], validation: tuple[int, ...]
) -> list[Claim]:
    best = Choice(COLUMN, metric, validation)
    statement = claim.statement.rstrip(".")
    return [
        at_best(claim, COLUMN, metric, validation),
        *(
            replace(
                claim,
                name=f"{claim.name}_at_{rate:g}",
                statement=f"{statement}, both networks at a peak rate of {rate:g} (our check).",
                choice=replace(best, value=rate),
                primary=False,
            )
            for rate in rates
        ),
    ]


def _cores(**vocabularies: int) -> list[Settings]:
    return [{"core.kind": core, "task.vocab_size": size} for core, size in vocabularies.items()]


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    training = {**DEMO_TRAINING, "training.iterations": 500}
    return grid({"task.length": 16, **widths(128), **training}, _cores(gru=16), encodings())


def small() -> tuple[RunSpec, ...]:
    """Two hours on two CPU cores: the networks of the short trainings."""
    return grid(SMALL, _cores(elman=8, gru=64, lstm=192), encodings(), seeds=SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """Return the published sizes where vanilla falls short, for GPUs."""
    return grid({}, _cores(elman=8, gru=64, lstm=1_024), encodings())


FIGURE = by_core("task.vocab_size", "token_accuracy", x_base=2)
UNTUNED = Experiment(
    name="learning_rate",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        [encoding_helps(core, PLACE if core != "elman" else PLACE[1]) for core in KINDS],
        "encoding_helps_gru",
        "encoding_helps_lstm",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
)

EXPERIMENT = tuned(UNTUNED, "learning_rate", [claim.name for claim in UNTUNED.claims])
