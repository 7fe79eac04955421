"""Wrong answers and states of networks at equal accuracy.

The networks are those of the hot cell of `temperature`, in the checkpoints nearest to two levels of
training accuracy. The rate is constant, so trainings end soon after the later level: what comes
after it is not looked at.

Source: ours; the accounts are told apart in docs/evidence/plans/anatomy.md.
"""

from collections.abc import Sequence

from .comparisons import PLACE, claims_about, lay_out, named
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODING,
    HOT,
    SMALL_PACED,
    Settings,
    at,
    crossed,
    encodings,
    grids,
    kinds,
)
from .predicates import Claim, Contrast, Differs, with_primary
from .temperature import GAIN

TABLE = "anatomy"
VANILLA = GAIN
"""By how much more the vanilla network has of something."""
BOTH = kinds("lstm", "gru")


def _networks(core: str, size: int, *updates: int) -> list[Settings]:
    """Return a core without and with the encoding, each with its own number of updates."""
    return [
        {
            "core.kind": core,
            "task.vocab_size": size,
            **encoding,
            "training.iterations": iterations,
        }
        for encoding, iterations in zip(encodings(), updates, strict=True)
    ]


def _about(
    name: str,
    statement: str,
    metric: str,
    contrast: Contrast = VANILLA,
    conditions: Sequence[Settings] = BOTH,
    table: str = TABLE,
    **where: float,
) -> list[Claim]:
    return claims_about(
        name,
        f"At equal accuracy, {statement}",
        lambda here: Differs(metric, {**here, **where}, contrast, cells="level"),
        conditions,
        PLACE,
        table=table,
        ours=True,
    )


CLAIMS = (
    *_about(
        "neighbours_{core}",
        "more of the wrong answers are the neighbour's token in the vanilla {core} than in the "
        "encoded one",
        "neighbour_share",
    ),
    *_about(
        "overlap_{core}",
        "the subspaces in which positions change the state overlap more in the vanilla {core} than "
        "in the encoded one",
        "overlap",
    ),
    *_about(
        "magnitudes_{core}",
        "the last state's gradient changes more from input to input in the vanilla {core} than in "
        "the encoded one",
        "gradient_slope_size",
    ),
    *_about(
        "noise_{core}",
        "noise of a tenth on the weights costs the vanilla {core} more accuracy than the encoded "
        "one",
        "loss",
        table="noise",
        noise=0.1,
    ),
    *_about(
        "order_{core}",
        "more of the wrong answers are a token of the input in the vanilla {core} than in the "
        "encoded one",
        "sequence_share",
    ),
    *_about(
        "time_{core}",
        "the time is read better from the encoded {core}'s state than from the vanilla one's",
        "time_read",
        ENCODING,
    ),
    *_about(
        "tokens_{core}",
        "the tokens are read better from the encoded {core}'s state at the end of the input than "
        "from the vanilla one's",
        "tokens_read",
        ENCODING,
    ),
    *_about(
        "nearest_first_{encoding}_{core}",
        "more of the {encoding} {core}'s wrong answers are the token one step off than the one two "
        "steps off",
        "share",
        Contrast("distance", 1, 2),
        crossed(BOTH, encodings()),
        "errors",
    ),
    # The pilots lost nothing to it.
    *_about(
        "noise_1_percent_{core}",
        "noise of a hundredth on the weights costs the vanilla {core} more accuracy than the "
        "encoded one",
        "loss",
        table="noise",
        noise=0.01,
    ),
)
FIGURE = lay_out("distance", "share", panels=("core.kind", "level"), contrast=None, table="errors")

ANATOMY = Experiment(
    name="anatomy",
    scales=grids(
        at(HOT),
        (),
        demo=(
            {
                **DEMO_PACED,
                "training.checkpoint_interval": 20,
                "training.keep_interval": 20,
                "analysis": {"kind": "anatomy", "num_sequences": 256},
            },
            [*_networks("gru", 8, 600, 600), *_networks("lstm", 16, 600, 600)],
        ),
        # An hour on two CPU cores.
        small=(
            {
                **SMALL_PACED,
                "training.checkpoint_interval": 100,
                "training.keep_interval": 100,
                "analysis": {"kind": "anatomy"},
            },
            [*_networks("gru", 32, 10_000, 6_000), *_networks("lstm", 192, 16_000, 8_000)],
        ),
    ),
    claims=with_primary(
        CLAIMS, "neighbours_*", "overlap_*", "magnitudes_*", "noise_lstm", "noise_gru"
    ),
    figure=FIGURE,
    more_figures={
        "state": lay_out(
            "level",
            "overlap",
            "gradient_slope_size",
            "tokens_read",
            "time_read",
            contrast=None,
            table=TABLE,
        )
    },
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
