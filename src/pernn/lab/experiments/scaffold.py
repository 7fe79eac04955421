"""Is the encoding needed early, late, or for every answer?

The encoding is there always, never, for the first updates alone, for the second half alone, or
until it is withdrawn from the trained network.

Source: ours; the question is that of Morita (2024), version 3, figure 2.
"""

from collections.abc import Mapping, Sequence

from pernn.lab.runs import RunSpec

from .comparisons import CORES, OURS, labels
from .experiment import Experiment, FigureLayout
from .grids import SEEDS, SMALL_SEEDS, Settings, encodings, grid
from .learning_rate import COLUMN, PLACE
from .predicates import Claim, Contrast, Differs, with_primary
from .temperature import BATCH, DEMO_PACED, HOT, PAPER_PACED, SMALL_PACED, TENTH

WHEN = "training.encoding_schedule"
ARMS = {"early": "Faded out", "late": "Second half", "withdrawn": "Withdrawn at the end"}
COLLAPSE = 0.1
"""A loss of token accuracy of more than this counts as a collapse."""


def _specs(
    base: Settings, vocabularies: Mapping[str, int], seeds: Sequence[int], divisor: int = 1
) -> tuple[RunSpec, ...]:
    hot = {COLUMN: HOT[0] / divisor, BATCH: HOT[1]}
    cores = [{"core.kind": core, "task.vocab_size": size} for core, size in vocabularies.items()]
    scheduled = [{"encoding.kind": "sinusoidal", WHEN: when} for when in ARMS]
    return grid({**base, **hot}, cores, [*encodings(), *scheduled], seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return _specs(DEMO_PACED, {"gru": 8, "lstm": 16}, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for two hours on two CPU cores.

    The arms "always" and "never" are those of `temperature`.
    """
    return _specs(SMALL_PACED, {"gru": 64, "lstm": 192}, SMALL_SEEDS)


def paper() -> tuple[RunSpec, ...]:
    """Return the published sizes, for GPUs."""
    return _specs(PAPER_PACED, {"gru": 64, "lstm": 1_024}, SEEDS, TENTH)


def _claim(name: str, core: str, statement: str, predicate: Differs) -> Claim:
    text = f"{statement.format(CORES[core])} (our check)."
    return Claim(name=f"{name}_{core}", statement=text, source=PLACE, predicate=predicate)


def _above_never(core: str, when: str) -> Differs:
    encoded, vanilla = encodings("sinusoidal", "none")
    contrast = Contrast(WHEN, when, None, treated_where=encoded, baseline_where=vanilla)
    return Differs("token_accuracy", {"core.kind": core}, contrast, "task.vocab_size")


def _below_always(core: str, when: str, margin: float = 0.0) -> Differs:
    return Differs(
        "token_accuracy",
        {"core.kind": core, "encoding.kind": "sinusoidal"},
        Contrast(WHEN, when, None),
        "task.vocab_size",
        sign=-1,
        margin=margin,
        margin_origin=OURS if margin else "",
    )


PRIMARY = tuple(
    one
    for core in ("lstm", "gru")
    for one in (
        _claim(
            "collapses_when_withdrawn",
            core,
            f"Without the encoding that it was trained with, the {{}} loses more than {COLLAPSE:g} "
            "of token accuracy",
            _below_always(core, "withdrawn", COLLAPSE),
        ),
        _claim(
            "early_helps",
            core,
            "An encoding that is gone after half of the updates leaves the {} above the vanilla "
            "one",
            _above_never(core, "early"),
        ),
    )
)
OTHERS = tuple(
    one
    for core in ("lstm", "gru")
    for one in (
        _claim(
            "late_helps",
            core,
            "An encoding in the second half alone leaves the {} above the vanilla one",
            _above_never(core, "late"),
        ),
        _claim(
            "early_is_not_all",
            core,
            "An encoding that is gone after half of the updates leaves the {} below the encoded "
            "one",
            _below_always(core, "early"),
        ),
    )
)

FIGURE = FigureLayout(
    x="core.kind",
    panels="training.schedule",
    lines=("encoding.kind", WHEN),
    metrics=("token_accuracy",),
)

EXPERIMENT = Experiment(
    name="scaffold",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary((*PRIMARY, *OTHERS), *(one.name for one in PRIMARY)),
    figure=FIGURE,
    labels={
        **labels(FIGURE, "gru", "lstm"),
        "constant": "At a constant rate",
        "none, None": "Never",
        "sinusoidal, None": "Always",
        **{f"sinusoidal, {when}": name for when, name in ARMS.items()},
        **ARMS,
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
