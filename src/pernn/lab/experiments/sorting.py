"""Does the encoding help where the inputs' order is irrelevant?

Source: Morita (2024), versions 2 and 3, appendix A.2 and figure 8; version 1, appendix C.2 and
figure 12.
"""

from .comparisons import PAPER_SETTING, claims_about, falls, labels, lay_out
from .experiment import Experiment
from .grids import ENCODING, POWERS, SMALL, brief, cores, crossed, each, encodings, grids, kinds
from .predicates import AtLeast, Claim, Contrast, Differs, DiffersMore, Place, with_primary

KINDS = ("elman", "gru", "lstm")
LARGE = tuple(size for size in POWERS if size >= 512)
BEYOND = tuple(size for size in POWERS if size > 512)
TASKS = each("task.kind", ["sorting", "reverse_ordering"])
"""Sorting, and the task that the text compares it with, at the same settings."""
SORTING_ALONE = {"task.kind": "sorting"}
V1 = Place("v1", "appendix C.2 and Fig. 12")
V3 = Place("v3", "appendix A.2 and Fig. 8")
CONDITIONS = crossed(kinds(*KINDS), encodings())

CLAIMS = (
    *claims_about(
        "encoding_helps_{core}",
        "In sorting, the encoding raises the {core}'s token accuracy",
        lambda here: Differs(
            "token_accuracy", {**SORTING_ALONE, **here}, ENCODING, "task.vocab_size"
        ),
        kinds("gru", "lstm"),
        (V3, V1),
    ),
    Claim(
        name="elman_gains_at_64",
        statement="At K = 64 the encoding raises the Elman network's accuracy slightly (the text: "
        "by 2.09 points on average).",
        source=V1,
        predicate=Differs(
            "token_accuracy",
            {**SORTING_ALONE, "core.kind": "elman", "task.vocab_size": 64},
            ENCODING,
            cells="task.vocab_size",
            required=(64,),
        ),
        paper_value=0.0209,
    ),
    *claims_about(
        "smaller_gain_{core}",
        "The {core} gains less from the encoding in sorting than in reversing",
        lambda here: DiffersMore(
            "token_accuracy",
            here,
            ENCODING,
            Contrast("task.kind", treated="sorting", baseline="reverse_ordering"),
            cells="task.vocab_size",
            sign=-1,
        ),
        kinds(*KINDS),
        {"elman": V1, "gru": (V3, V1), "lstm": (V3, V1)},
    ),
    *claims_about(
        "tolerates_large_{core}",
        "Beyond K = 512 the encoded {core} is above the vanilla one",
        lambda here: Differs(
            "token_accuracy",
            {**SORTING_ALONE, **here, "task.vocab_size": BEYOND},
            ENCODING,
            cells="task.vocab_size",
        ),
        kinds("gru", "lstm"),
        V1,
    ),
    *claims_about(
        "falls_{core}_{encoding}",
        "The {encoding} {core}'s token accuracy falls with K from K = 512 on",
        lambda here: falls({**SORTING_ALONE, **here, "task.vocab_size": LARGE}),
        CONDITIONS,
        V1,
    ),
    *claims_about(
        "ascends_{core}_{encoding}",
        "At every K, over 99.9 % of the {encoding} {core}'s neighbouring outputs ascend (pairs, as "
        "the published program counts)",
        lambda here: AtLeast(
            "ascending_pair_share",
            {**PAPER_SETTING, **SORTING_ALONE, **here},
            cells="task.vocab_size",
            required=POWERS,
            threshold=0.999,
            threshold_origin="the text's",
        ),
        CONDITIONS,
        V1,
    ),
)
FIGURE = lay_out(
    "task.vocab_size",
    "token_accuracy",
    "ascending_pair_share",
    "ascending_sequence_share",
    x_base=2,
    rows="task.kind",
)

SORTING = Experiment(
    name="sorting",
    scales=grids(
        {},
        # Minutes, and an hour or two, on two CPU cores.
        demo=(
            brief(length=16, size=128, updates=380),
            each("task.vocab_size", [4, 16, 64]),
            TASKS,
            kinds(*KINDS),
        ),
        small=(SMALL, cores(elman=(8, 64), gru=(16, 64), lstm=(64, 192)), TASKS),
        paper=({}, each("task.vocab_size", POWERS), TASKS, kinds(*KINDS)),
    ),
    claims=with_primary(CLAIMS, "smaller_gain_gru", "smaller_gain_lstm"),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS, "sorting", "reverse_ordering"),
)
