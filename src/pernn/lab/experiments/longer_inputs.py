"""Can a user who needs longer inputs take the encoding?

Trained on inputs of 4 … 8 tokens, networks are tested on 12 and 16. Steps beyond 16 occur in no
training sequence: sinusoids go on there, the rows of a learned table are as they were drawn, and
from a random onset such positions were seen.

Source: ours; the question is that of Morita (2024), versions 2 and 3, appendix B.
"""

from collections.abc import Mapping, Sequence

from pernn.lab.runs import RunSpec

from .comparisons import CORES, OURS, named
from .experiment import Experiment, FigureLayout
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    SEEDS,
    SHORT_TRAINING,
    SMALL_SEEDS,
    Settings,
    grid,
    widths,
)
from .predicates import AtLeast, AtMost, Claim, Contrast, Differs, with_primary
from .variable_length import KINDS, SOURCE

TASK: Settings = {
    "task.kind": "longer_inputs",
    "task.length": 8,
    "task.min_length": 4,
    "task.tested_lengths": [12, 16],
    "task.num_held_out": 256,
    **widths(64),
}
METRIC = "token_accuracy"
WITHIN, BEYOND = (4, 5, 6, 7, 8), (12, 16)
HALF, LEARNT = 0.5, 0.95
ARMS: dict[str, Settings] = {
    "Vanilla": {"encoding.kind": "none"},
    "Sinusoids": {"encoding.kind": "sinusoidal"},
    "Sinusoids, any onset": {"encoding.kind": "none", "task.codes": "onset"},
    "Learned table": {"encoding.kind": "learned"},
}
COLUMNS = ("encoding.kind", "task.codes")
"""What tells arms apart."""


def _specs(
    training: Settings, vocabularies: Mapping[str, int], seeds: Sequence[int]
) -> tuple[RunSpec, ...]:
    cores = [{"core.kind": core, "task.vocab_size": size} for core, size in vocabularies.items()]
    return grid({**TASK, **training}, cores, list(ARMS.values()), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return _specs({**DEMO_TRAINING, "training.iterations": 600}, {"gru": 8, "lstm": 16}, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: vocabularies that are learnt in training."""
    return _specs(
        {**SHORT_TRAINING, "training.iterations": 2_000}, {"gru": 8, "lstm": 32}, SMALL_SEEDS
    )


def _claims(core: str) -> tuple[Claim, ...]:
    here = {"core.kind": core, "length": BEYOND}
    onset = {"task.codes": "onset"}
    plain = {"task.codes": None}
    said: tuple[tuple[str, str, AtLeast | AtMost | Differs], ...] = (
        (
            "vanilla_fails",
            f"Without an encoding the {{}} gives less than {HALF:g} of longer inputs back",
            AtMost(METRIC, {**here, **ARMS["Vanilla"], **plain}, "length", BEYOND, HALF, OURS),
        ),
        (
            "sinusoids_fail",
            f"With sinusoids the {{}} gives less than {HALF:g} of longer inputs back",
            AtMost(METRIC, {**here, **ARMS["Sinusoids"]}, "length", BEYOND, HALF, OURS),
        ),
        (
            "sinusoids_cost",
            "With longer inputs the {} with sinusoids is below the vanilla one",
            Differs(METRIC, {**here, **plain}, ENCODING, "length", BEYOND, sign=-1),
        ),
        (
            "onset_helps",
            "With longer inputs the {} with sinusoids from a random onset is above the vanilla one",
            Differs(
                METRIC,
                {**here, "encoding.kind": "none"},
                Contrast("task.codes", treated="onset", baseline=None),
                "length",
                BEYOND,
            ),
        ),
        (
            "onset_mends",
            "With longer inputs the {} with sinusoids is better off from a random onset",
            Differs(
                METRIC,
                here,
                Contrast(
                    "encoding.kind",
                    treated="none",
                    baseline="sinusoidal",
                    treated_where=onset,
                ),
                "length",
                BEYOND,
            ),
        ),
        (
            "table_below_sinusoids",
            "With longer inputs the {} with a learned table is below that with sinusoids",
            Differs(
                METRIC,
                here,
                Contrast("encoding.kind", treated="learned", baseline="sinusoidal"),
                "length",
                BEYOND,
                sign=-1,
            ),
        ),
        (
            "learnt_within",
            f"Within the lengths of training the vanilla {{}} gives {LEARNT:g} back",
            AtLeast(
                METRIC,
                {"core.kind": core, **ARMS["Vanilla"], **plain, "length": WITHIN},
                "length",
                WITHIN,
                LEARNT,
                OURS,
            ),
        ),
    )
    return tuple(
        Claim(
            name=f"{name}_{core}",
            statement=f"{words.format(CORES[core])} (our check).",
            source=SOURCE,
            predicate=predicate,
            table="by_length",
        )
        for name, words, predicate in said
    )


CLAIMS = {core: _claims(core) for core in KINDS}
PRIMARY = ("sinusoids_cost", "onset_helps", "onset_mends")
FIGURE = FigureLayout(
    x="length",
    panels="core.kind",
    lines=COLUMNS,
    metrics=(METRIC,),
    table="by_length",
    form="bands",
)

EXPERIMENT = Experiment(
    name="longer_inputs",
    scales={"demo": demo, "small": small},
    claims=with_primary(
        [claim for core in KINDS for claim in CLAIMS[core]],
        *(f"{name}_{core}" for core in KINDS for name in PRIMARY),
    ),
    figure=FIGURE,
    labels={
        **named("core.kind", *KINDS, "encoding.kind", "task.codes", METRIC, "none", "sinusoidal"),
        "length": "Input length; 4 … 8 in training",
        "learned": "Learned",
        "onset": "Any onset",
        **{", ".join(str(arm.get(one)) for one in COLUMNS): name for name, arm in ARMS.items()},
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
