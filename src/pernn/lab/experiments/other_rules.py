"""Does the encoding help to add, look up, wait or sort?

`predecessor_query`: the text gives no vocabulary sizes; K = 512 … 1024 is kept, and the step of 128
is ours.

Source: Morita (2024), versions 2 and 3, appendices A.1 and A.2, figures 7 and 8; version 5,
appendix A.3; version 1, appendices C.1 and C.2, figures 11 and 12.
"""

from .comparisons import (
    ACCURACY,
    PAPER_SETTING,
    claims_about,
    encoding_helps,
    falls,
    gain_grows,
    lay_out,
    no_gain,
)
from .experiment import Experiment
from .grids import (
    ENCODING,
    LSTM,
    POWERS,
    SMALL,
    UPDATES,
    VOCABULARY,
    brief,
    cores,
    crossed,
    each,
    encodings,
    grids,
    kinds,
    vocabularies,
)
from .predicates import (
    PLANNED,
    AtLeast,
    Cells,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    EveryTrial,
    Place,
    Sooner,
    with_primary,
)

ADDING = (Place("v3", "appendix A.1 and Fig. 7"), Place("v5", "appendix A.1"))
ADDING_CLAIMS = (encoding_helps("lstm", ADDING), gain_grows("lstm", ADDING))
FIGURE = lay_out(VOCABULARY, ACCURACY)

DELAYED_ADDITION = Experiment(
    name="delayed_addition",
    scales=grids(
        {"task.kind": "delayed_addition", **LSTM},
        # Minutes, and half an hour, on two CPU cores.
        demo=(brief(length=8, size=128, updates=1_200), vocabularies(8, 16, 24)),
        small=(SMALL, vocabularies(8, 16, 32)),
        # Twice the usual updates.
        paper=({"task.length": 16, UPDATES: 600_000}, vocabularies(896, 960, 1024, 1088)),
    ),
    claims=with_primary(ADDING_CLAIMS, "encoding_helps_lstm"),
    figure=FIGURE,
)

LOOKING_UP = Place("v5", "appendix A.3")

PREDECESSOR_QUERY = Experiment(
    name="predecessor_query",
    scales=grids(
        {"task.kind": "predecessor_query", **LSTM},
        # Minutes, and an hour, on two CPU cores.
        demo=(brief(length=8, size=128, updates=1_700), vocabularies(16, 32, 48)),
        small=({**SMALL, UPDATES: 16_000}, vocabularies(8, 12, 16)),
        paper=({"task.length": 16}, vocabularies(512, 640, 768, 896, 1024)),
    ),
    claims=with_primary([encoding_helps("lstm", LOOKING_UP)], "encoding_helps_lstm"),
    figure=FIGURE,
)

WAITING = Place("v1", "appendix C.1 and Fig. 11")
WAIT = "task.hold_time"
HOLD_TIMES = (60, 70, 80, 90, 100)
WAITS = lay_out(WAIT, ACCURACY, "solved", "stuck")
MEMORY = {"task.kind": "copying_memory", VOCABULARY: 8, **LSTM}
NO_HELP = Claim(
    "no_help_lstm",
    "The encoding does not improve the LSTM's token accuracy.",
    WAITING,
    no_gain(LSTM, ENCODING, WAIT),
)


def _all_or_nothing(length: int, holds: Cells) -> list[Claim]:
    ends = (1.0, 1 / 8)
    error = f"ours: above the error of measuring a share in {1024 * length:,} tokens"
    return claims_about(
        "all_or_nothing_{encoding}",
        "Every {encoding} LSTM ends perfect or at chance, 0.125",
        EveryTrial(ACCURACY, {"task.length": length}, WAIT, holds, ends, 0.01, error),
        encodings(),
        WAITING,
    )


COPYING_MEMORY = Experiment(
    name="copying_memory",
    scales=grids(
        MEMORY,
        # Minutes, and an hour or two, on two CPU cores: fewer tokens, held for less time.
        demo=(brief(length=4, size=128, updates=1_000), each(WAIT, [5, 10, 20])),
        small=({**SMALL, "task.length": 5}, each(WAIT, [20, 30, 40])),
        paper=({"task.length": 10}, each(WAIT, HOLD_TIMES)),
    ),
    claims=with_primary((NO_HELP, *_all_or_nothing(10, HOLD_TIMES)), "no_help_lstm"),
    figure=WAITS,
)

SHORT_WAITS_CLAIMS = (
    Claim(
        "no_more_solved",
        "The encoding does not raise the share of LSTMs that solve the task.",
        WAITING,
        no_gain(LSTM, ENCODING, WAIT, 0.1, "ours: a tenth of the trials", "solved"),
    ),
    NO_HELP,
    Claim(
        "sooner_lstm",
        "The encoding lets the LSTM learn sooner (our check).",
        WAITING,
        Sooner(0.9, LSTM, ENCODING, WAIT),
    ),
    *_all_or_nothing(5, PLANNED),
)

SHORT_WAITS = Experiment(
    name="short_waits",
    scales=grids(
        MEMORY,
        demo=(brief(length=4, size=64, updates=1_000), each(WAIT, [2, 5])),
        # So short that LSTMs can solve it.
        small=({**SMALL, "task.length": 5, UPDATES: 16_000}, each(WAIT, [5, 10, 15])),
    ),
    claims=with_primary(SHORT_WAITS_CLAIMS, "no_more_solved"),
    figure=WAITS,
    rules={"small": "2026-12"},
)

KINDS = ("elman", "gru", "lstm")
BEYOND = tuple(size for size in POWERS if size > 512)
TASKS = each("task.kind", ["sorting", "reverse_ordering"])
"""Sorting, and the task that the text compares it with, at the same settings."""
RULE = Contrast("task.kind", treated="sorting", baseline="reverse_ordering")
SORTING_ALONE = {"task.kind": "sorting"}
V1 = Place("v1", "appendix C.2 and Fig. 12")
V3 = Place("v3", "appendix A.2 and Fig. 8")
SORTED = crossed([SORTING_ALONE], kinds(*KINDS), encodings())
GATED = crossed([SORTING_ALONE], kinds("gru", "lstm"))
ELMAN_64 = {**SORTING_ALONE, "core.kind": "elman", VOCABULARY: 64}
ASCENDING = "ascending_pair_share"

SORTING_CLAIMS = (
    *claims_about(
        "encoding_helps_{core}",
        "In sorting, the encoding raises the {core}'s token accuracy",
        Differs(ACCURACY, {}, ENCODING, VOCABULARY),
        GATED,
        (V3, V1),
    ),
    Claim(
        "elman_gains_at_64",
        "At K = 64 the encoding raises the Elman network's accuracy slightly (the text: by 2.09 "
        "points on average).",
        V1,
        Differs(ACCURACY, ELMAN_64, ENCODING, VOCABULARY, required=(64,)),
        paper_value=0.0209,
    ),
    *claims_about(
        "smaller_gain_{core}",
        "The {core} gains less from the encoding in sorting than in reversing",
        DiffersMore(ACCURACY, {}, ENCODING, RULE, VOCABULARY, sign=-1),
        kinds(*KINDS),
        {"elman": V1, "gru": (V3, V1), "lstm": (V3, V1)},
    ),
    *claims_about(
        "tolerates_large_{core}",
        "Beyond K = 512 the encoded {core} is above the vanilla one",
        Differs(ACCURACY, {VOCABULARY: BEYOND}, ENCODING, VOCABULARY),
        GATED,
        V1,
    ),
    *claims_about(
        "falls_{core}_{encoding}",
        "The {encoding} {core}'s token accuracy falls with K from K = 512 on",
        falls({VOCABULARY: tuple(size for size in POWERS if size >= 512)}),
        SORTED,
        V1,
    ),
    *claims_about(
        "ascends_{core}_{encoding}",
        "At every K, over 99.9 % of the {encoding} {core}'s neighbouring outputs ascend (pairs, as "
        "the published program counts)",
        AtLeast(ASCENDING, {}, VOCABULARY, POWERS, 0.999, "the text's"),
        crossed([PAPER_SETTING], SORTED),
        V1,
    ),
)
SHARES = (ASCENDING, "ascending_sequence_share")

SORTING = Experiment(
    name="sorting",
    scales=grids(
        {},
        # Minutes, and an hour or two, on two CPU cores.
        demo=(
            brief(length=16, size=128, updates=380),
            vocabularies(4, 16, 64),
            TASKS,
            kinds(*KINDS),
        ),
        small=(SMALL, cores(elman=(8, 64), gru=(16, 64), lstm=(64, 192)), TASKS),
        paper=({}, vocabularies(*POWERS), TASKS, kinds(*KINDS)),
    ),
    claims=with_primary(SORTING_CLAIMS, "smaller_gain_gru", "smaller_gain_lstm"),
    figure=lay_out(VOCABULARY, ACCURACY, *SHARES, x_base=2, rows="task.kind"),
    labels={"sorting": "Sorting"},
)
