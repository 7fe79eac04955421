"""Wrong answers and states of networks at equal accuracy.

The networks are those of the hot cell of `temperature`, in the checkpoints nearest to two levels of
training accuracy. The rate is constant, so trainings end soon after the later level: what comes
after it is not looked at.

Source: ours; the accounts are told apart in docs/evidence/plans/anatomy.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import CORES, named
from .experiment import Experiment, FigureLayout
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, grid
from .learning_rate import COLUMN, PLACE
from .predicates import Claim, Contrast, Differs, Where, with_primary
from .temperature import BATCH, DEMO_PACED, HOT, SMALL_PACED

TABLE = "anatomy"
VANILLA = Contrast("encoding.kind", treated=ENCODING.baseline, baseline=ENCODING.treated)
"""By how much more the vanilla network has of something."""
NOISE = 0.1
"""Share of noise on the weights that is judged; at 0.01 the pilots lost nothing."""


def _specs(
    base: Settings, cells: Mapping[str, tuple[int, int, int]], seeds: Sequence[int]
) -> tuple[RunSpec, ...]:
    """Cross cores (vocabulary, updates without and with the encoding) and encodings."""
    conditions = [
        {
            "core.kind": core,
            "task.vocab_size": size,
            "encoding.kind": kind,
            "training.iterations": iterations,
        }
        for core, (size, *updates) in cells.items()
        for kind, iterations in zip((ENCODING.baseline, ENCODING.treated), updates, strict=True)
    ]
    return grid({**base, COLUMN: HOT[0], BATCH: HOT[1]}, conditions, seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    kept = {"training.checkpoint_interval": 20, "training.keep_interval": 20}
    analysis = {"kind": "anatomy", "num_sequences": 256}
    cells = {"gru": (8, 600, 600), "lstm": (16, 600, 600)}
    return _specs({**DEMO_PACED, **kept, "analysis": analysis}, cells, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    kept = {"training.checkpoint_interval": 100, "training.keep_interval": 100}
    cells = {"gru": (32, 10_000, 6_000), "lstm": (192, 16_000, 8_000)}
    return _specs({**SMALL_PACED, **kept, "analysis": {"kind": "anatomy"}}, cells, SMALL_SEEDS)


def _vanilla_more(
    name: str, statement: str, metric: str, table: str = TABLE, where: Where | None = None
) -> list[Claim]:
    return [
        _claim(
            f"{name}_{core}",
            statement.format(CORES[core]),
            Differs(metric, {"core.kind": core, **(where or {})}, VANILLA, cells="level"),
            table,
        )
        for core in ("lstm", "gru")
    ]


def _claim(name: str, statement: str, predicate: Differs, table: str = TABLE) -> Claim:
    text = f"At equal accuracy, {statement} (our check)."
    return Claim(name=name, statement=text, source=PLACE, predicate=predicate, table=table)


PRIMARY = (
    *_vanilla_more(
        "neighbours",
        "more of the wrong answers are the neighbour's token in the vanilla {} than in the encoded "
        "one",
        "neighbour_share",
    ),
    *_vanilla_more(
        "overlap",
        "the subspaces in which positions change the state overlap more in the vanilla {} than in "
        "the encoded one",
        "overlap",
    ),
    *_vanilla_more(
        "magnitudes",
        "the last state's gradient changes more from input to input in the vanilla {} than in the "
        "encoded one",
        "gradient_slope_size",
    ),
    *_vanilla_more(
        "noise",
        "noise of a tenth on the weights costs the vanilla {} more accuracy than the encoded one",
        "loss",
        "noise",
        {"noise": NOISE},
    ),
)
OTHERS = (
    *_vanilla_more(
        "order",
        "more of the wrong answers are a token of the input in the vanilla {} than in the encoded "
        "one",
        "sequence_share",
    ),
    *(
        _claim(
            f"time_{core}",
            f"the time is read better from the encoded {CORES[core]}'s state than from the vanilla "
            "one's",
            Differs("time_read", {"core.kind": core}, ENCODING, cells="level"),
        )
        for core in ("lstm", "gru")
    ),
    *(
        _claim(
            f"tokens_{core}",
            f"the tokens are read better from the encoded {CORES[core]}'s state at the end of the "
            "input than from the vanilla one's",
            Differs("tokens_read", {"core.kind": core}, ENCODING, cells="level"),
        )
        for core in ("lstm", "gru")
    ),
    *(
        _claim(
            f"nearest_first_{kind}_{core}",
            f"more of the {name} {CORES[core]}'s wrong answers are the token one step off than the "
            "one two steps off",
            Differs(
                "share",
                {"core.kind": core, "encoding.kind": kind},
                Contrast("distance", 1, 2),
                cells="level",
            ),
            "errors",
        )
        for core in ("lstm", "gru")
        for kind, name in ((ENCODING.baseline, "vanilla"), (ENCODING.treated, "encoded"))
    ),
    *_vanilla_more(
        "noise_1_percent",
        "noise of a hundredth on the weights costs the vanilla {} more accuracy than the encoded "
        "one",
        "loss",
        "noise",
        {"noise": 0.01},
    ),
)

FIGURE = FigureLayout(
    x="distance",
    panels=("core.kind", "level"),
    lines="encoding.kind",
    metrics=("share",),
    table="errors",
)
STATE = replace(
    FIGURE,
    x="level",
    panels="core.kind",
    metrics=("overlap", "gradient_slope_size", "tokens_read", "time_read"),
    table=TABLE,
)

EXPERIMENT = Experiment(
    name="anatomy",
    scales={"demo": demo, "small": small},
    claims=with_primary((*PRIMARY, *OTHERS), *(one.name for one in PRIMARY)),
    figure=FIGURE,
    more_figures={"state": STATE},
    labels={
        "distance": "Steps off",
        "share": "Share of wrong answers",
        "level": "Training accuracy",
        "state": "How the state holds the tokens",
        "overlap": "Overlap of positions",
        "gradient_slope_size": "Slope of the log gradient",
        "tokens_read": "Tokens read from the last state",
        "time_read": "Time read from the state",
        "neighbour_share": "Share of neighbours' tokens",
        "sequence_share": "Share of tokens of the input",
        "loss": "Loss of accuracy under noise",
        "noise": "Noise in the weights",
        **named("core.kind", "gru", "lstm", "encoding.kind", "none", "sinusoidal"),
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
