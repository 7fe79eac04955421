"""Wrong answers and states of networks at equal accuracy.

The networks are those of the hot cell of `temperature`, in the checkpoints nearest to two levels of
training accuracy. The rate is constant, so trainings end soon after the later level: what comes
after it is not looked at.

Source: ours; the accounts are told apart in docs/evidence/plans/anatomy.md.
"""

from functools import partial

from .comparisons import PLACE, claims_about, lay_out
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODING,
    HOT,
    SMALL_PACED,
    UPDATES,
    VOCABULARY,
    Settings,
    at,
    crossed,
    encodings,
    grids,
    kept,
    kinds,
)
from .predicates import Contrast, Differs, with_primary
from .temperature import GAIN

TABLE = "anatomy"
VANILLA = GAIN
"""By how much more the vanilla network has of something."""


def _networks(core: str, size: int, *updates: int) -> list[Settings]:
    """Return a core without and with the encoding, each with its own number of updates."""
    return [
        {"core.kind": core, VOCABULARY: size, **encoding, UPDATES: number}
        for encoding, number in zip(encodings(), updates, strict=True)
    ]


of_both = partial(
    claims_about, conditions=kinds("lstm", "gru"), source=PLACE, table=TABLE, ours=True
)
CLAIMS = (
    *of_both(
        "neighbours_{core}",
        "At equal accuracy, more of the wrong answers are the neighbour's token in the vanilla "
        "{core} than in the encoded one",
        Differs("neighbour_share", {}, VANILLA, "level"),
    ),
    *of_both(
        "overlap_{core}",
        "At equal accuracy, the subspaces in which positions change the state overlap more in the "
        "vanilla {core} than in the encoded one",
        Differs("overlap", {}, VANILLA, "level"),
    ),
    *of_both(
        "magnitudes_{core}",
        "At equal accuracy, the last state's gradient changes more from input to input in the "
        "vanilla {core} than in the encoded one",
        Differs("gradient_slope_size", {}, VANILLA, "level"),
    ),
    *of_both(
        "noise_{core}",
        "At equal accuracy, noise of a tenth on the weights costs the vanilla {core} more accuracy "
        "than the encoded one",
        Differs("loss", {"noise": 0.1}, VANILLA, "level"),
        table="noise",
    ),
    *of_both(
        "order_{core}",
        "At equal accuracy, more of the wrong answers are a token of the input in the vanilla "
        "{core} than in the encoded one",
        Differs("sequence_share", {}, VANILLA, "level"),
    ),
    *of_both(
        "time_{core}",
        "At equal accuracy, the time is read better from the encoded {core}'s state than from the "
        "vanilla one's",
        Differs("time_read", {}, ENCODING, "level"),
    ),
    *of_both(
        "tokens_{core}",
        "At equal accuracy, the tokens are read better from the encoded {core}'s state at the end "
        "of the input than from the vanilla one's",
        Differs("tokens_read", {}, ENCODING, "level"),
    ),
    *of_both(
        "nearest_first_{encoding}_{core}",
        "At equal accuracy, more of the {encoding} {core}'s wrong answers are the token one step "
        "off than the one two steps off",
        Differs("share", {}, Contrast("distance", 1, 2), "level"),
        conditions=crossed(kinds("lstm", "gru"), encodings()),
        table="errors",
    ),
    # The pilots lost nothing to it.
    *of_both(
        "noise_1_percent_{core}",
        "At equal accuracy, noise of a hundredth on the weights costs the vanilla {core} more "
        "accuracy than the encoded one",
        Differs("loss", {"noise": 0.01}, VANILLA, "level"),
        table="noise",
    ),
)
STATE = ("overlap", "gradient_slope_size", "tokens_read", "time_read")
FIGURE = lay_out("distance", "share", panels=("core.kind", "level"), contrast=None, table="errors")

ANATOMY = Experiment(
    name="anatomy",
    scales=grids(
        at(HOT),
        (),
        demo=(
            {**DEMO_PACED, **kept(20), "analysis": {"kind": "anatomy", "num_sequences": 256}},
            [*_networks("gru", 8, 600, 600), *_networks("lstm", 16, 600, 600)],
        ),
        # An hour on two CPU cores.
        small=(
            {**SMALL_PACED, **kept(100), "analysis": {"kind": "anatomy"}},
            [*_networks("gru", 32, 10_000, 6_000), *_networks("lstm", 192, 16_000, 8_000)],
        ),
    ),
    claims=with_primary(
        CLAIMS, "neighbours_*", "overlap_*", "magnitudes_*", "noise_lstm", "noise_gru"
    ),
    figure=FIGURE,
    more_figures={"state": lay_out("level", *STATE, contrast=None, table=TABLE)},
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
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
