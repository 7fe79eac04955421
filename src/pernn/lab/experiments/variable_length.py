"""Does the encoding help where an answer's time is unknown?

In `longer_inputs`, networks that were trained on inputs of 4 … 8 tokens are tested on 12 and 16.
Steps beyond 16 occur in no training sequence: sinusoids go on there, the rows of a learned table
are as they were drawn, and from a random onset such positions were seen.

Source: Morita (2024), versions 2 and 3, appendix B and figure 9; longer inputs are ours.
"""

from functools import partial

from .comparisons import ACCURACY, OURS, claims_about, lay_out, together
from .experiment import Experiment
from .grids import (
    DEMO_TRAINING,
    ENCODED,
    ENCODING,
    LSTM,
    SHORT_TRAINING,
    SMALL,
    UPDATES,
    VANILLA,
    Settings,
    brief,
    cores,
    crossed,
    grids,
    kinds,
    widths,
)
from .predicates import AtLeast, AtMost, Claim, Contrast, Differs, Place, with_primary

SOURCE = (Place("v3", "appendix B and Fig. 9"), Place("v1", "appendix B.1 and Fig. 6"))
KINDS = ("gru", "lstm")
"""The text shows the LSTM alone; the GRU is ours, and nothing is claimed of it."""

HELPS = Claim(
    "encoding_helps_lstm",
    "The encoding raises the LSTM's token accuracy where the input length varies.",
    SOURCE,
    Differs(ACCURACY, LSTM, ENCODING, "length"),
    "by_length",
    primary=True,
)

VARIABLE_LENGTH = Experiment(
    name="variable_length",
    scales=grids(
        {"task.kind": "variable_length"},
        # Minutes, and half an hour, on two CPU cores.
        demo=(
            {
                **brief(length=16, size=128, updates=1_000),
                "task.min_length": 8,
                "task.num_held_out": 64,
            },
            cores(gru=16, lstm=16),
        ),
        # The LSTM's trials are those of `alternative_encodings`.
        small=({**SMALL, "task.min_length": 4, "task.num_held_out": 256}, cores(gru=64, lstm=192)),
        paper=({}, cores(lstm=16_384)),
    ),
    claims=(HELPS,),
    figure=lay_out("length", ACCURACY, table="by_length", form="bands"),
    labels={"length": "Input length"},
)

WITHIN, BEYOND = (4, 5, 6, 7, 8), (12, 16)
HALF, LEARNT = 0.5, 0.95
ONSET = {"task.codes": "onset"}
ARMS: dict[str, Settings] = {
    "Vanilla": VANILLA,
    "Sinusoids": ENCODED,
    "Sinusoids, any onset": {**VANILLA, **ONSET},
    "Learned table": {"encoding.kind": "learned"},
}
COLUMNS = ("encoding.kind", "task.codes")
"""What tells arms apart."""
PLAIN = {"task.codes": None}


def _claims(core: str) -> list[Claim]:
    about = partial(
        claims_about, conditions=kinds(core), source=SOURCE, table="by_length", ours=True
    )
    of_longer = partial(about, conditions=crossed(kinds(core), [{"length": BEYOND}]))
    compared = partial(Differs, ACCURACY, cells="length", required=BEYOND)
    return [
        *of_longer(
            "vanilla_fails_{core}",
            f"Without an encoding the {{core}} gives less than {HALF:g} of longer inputs back",
            AtMost(ACCURACY, {**VANILLA, **PLAIN}, "length", BEYOND, HALF, OURS),
        ),
        *of_longer(
            "sinusoids_fail_{core}",
            f"With sinusoids the {{core}} gives less than {HALF:g} of longer inputs back",
            AtMost(ACCURACY, ENCODED, "length", BEYOND, HALF, OURS),
        ),
        *of_longer(
            "sinusoids_cost_{core}",
            "With longer inputs the {core} with sinusoids is below the vanilla one",
            compared(PLAIN, ENCODING, sign=-1),
        ),
        *of_longer(
            "onset_helps_{core}",
            "With longer inputs the {core} with sinusoids from a random onset is above the vanilla "
            "one",
            compared(VANILLA, Contrast("task.codes", "onset", None)),
        ),
        *of_longer(
            "onset_mends_{core}",
            "With longer inputs the {core} with sinusoids is better off from a random onset",
            compared({}, Contrast("encoding.kind", "none", "sinusoidal", ONSET)),
        ),
        *of_longer(
            "table_below_sinusoids_{core}",
            "With longer inputs the {core} with a learned table is below that with sinusoids",
            compared({}, Contrast("encoding.kind", "learned", "sinusoidal"), sign=-1),
        ),
        *about(
            "learnt_within_{core}",
            f"Within the lengths of training the vanilla {{core}} gives {LEARNT:g} back",
            AtLeast(
                ACCURACY, {**VANILLA, **PLAIN, "length": WITHIN}, "length", WITHIN, LEARNT, OURS
            ),
        ),
    ]


LONGER_INPUTS = Experiment(
    name="longer_inputs",
    scales=grids(
        {
            "task.kind": "longer_inputs",
            "task.length": 8,
            "task.min_length": 4,
            "task.tested_lengths": [12, 16],
            "task.num_held_out": 256,
            **widths(64),
        },
        [*ARMS.values()],
        demo=({**DEMO_TRAINING, UPDATES: 600}, cores(gru=8, lstm=16)),
        # Minutes on two CPU cores: vocabularies that are learnt in training.
        small=({**SHORT_TRAINING, UPDATES: 2_000}, cores(gru=8, lstm=32)),
    ),
    claims=with_primary(
        [*_claims("gru"), *_claims("lstm")], "sinusoids_cost_*", "onset_helps_*", "onset_mends_*"
    ),
    figure=lay_out(
        "length", ACCURACY, lines=COLUMNS, contrast=None, table="by_length", form="bands"
    ),
    labels={
        "length": "Input length; 4 … 8 in training",
        "onset": "Any onset",
        **together(ARMS, COLUMNS),
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
