"""The vocabulary or input that a network handles, with and without encoding.

`constant_information` compares the two: the number of possible inputs, K^L, is the same everywhere,
2^768 at paper scale, as 768 = 2·384 = 3·256 = 6·128 = 12·64. (The text prints 2^796 for the first
one: a slip, as 4^384 is 2^768.) `infinite_vocabulary` has vectors, of which there are infinitely
many.

Source: Morita (2024), versions 2 and 3, figure 2; version 1, figures 2, 3 and 4, appendix B.3 and
figure 9; version 5, section 4.1.
"""

from functools import partial

from .comparisons import (
    CORES,
    OURS,
    PAPER_SETTING,
    Source,
    claims_about,
    encoding_helps,
    falls,
    gain_grows,
    labels,
    lay_out,
    named,
    no_gain,
)
from .experiment import Experiment
from .grids import (
    ENCODING,
    MASTERY_TRAINING,
    POWERS,
    SMALL,
    SMALL_SEEDS,
    Settings,
    brief,
    cores,
    crossed,
    each,
    encodings,
    grids,
    kinds,
    widths,
)
from .predicates import (
    PLANNED,
    AtLeast,
    Claim,
    Differs,
    Equivalent,
    Grows,
    LimitNear,
    Place,
    with_primary,
)

V1 = Place("v1", "section 4.1 and Fig. 2")
V3 = Place("v3", "section 2.1 and Fig. 2")
V5 = Place("v5", "section 4.1")
EXCEPTION = 8_192
"""The one vocabulary at which version 1 sees no advantage of the encoded Elman network."""
KINDS = ("elman", "gru", "lstm", "s4d")
MASTERY: Settings = {"task.length": 8, **widths(64), **MASTERY_TRAINING}


def _at_paper_scale(core: str) -> Settings:
    return {**PAPER_SETTING, "core.kind": core, "encoding.kind": ENCODING.treated}


def _masters(core: str, smallest: int, largest: int, source: Source) -> Claim:
    return Claim(
        name=f"masters_{core}_{smallest}_{largest}",
        statement=f"The encoded {CORES[core]} reaches 95 % of tokens for K = {smallest} … "
        f"{largest:,}.",
        source=source,
        predicate=AtLeast(
            "token_accuracy",
            _at_paper_scale(core),
            cells="task.vocab_size",
            required=tuple(size for size in POWERS if smallest <= size <= largest),
            threshold=0.95,
            threshold_origin="the text's",
        ),
    )


def _limit(core: str, near: int) -> Claim:
    return Claim(
        name=f"limit_{core}",
        statement=f"The encoded {CORES[core]} reaches the limit of its capacity at K = {near}.",
        source=V1,
        predicate=LimitNear(
            "token_accuracy",
            _at_paper_scale(core),
            along="task.vocab_size",
            required=POWERS,
            threshold=0.95,
            threshold_origin="ours: what the text calls success elsewhere; of limits it gives none",
            near=near,
        ),
    )


CLAIMS = (
    *claims_about(
        "vanilla_degrades_{core}",
        "The vanilla {core}'s token accuracy falls as the vocabulary grows",
        lambda here: falls({**here, "encoding.kind": ENCODING.baseline}),
        kinds("gru", "lstm"),
        {"gru": (V3, V5), "lstm": (V3, V5, V1)},
    ),
    encoding_helps("gru", (V3, V5, V1)),
    encoding_helps("lstm", (V3, V5, V1)),
    encoding_helps("s4d", V5),
    Claim(
        name="encoding_helps_elman",
        statement="The encoding raises the Elman network's token accuracy, except at K = 8,192.",
        source=V1,
        predicate=Differs(
            "token_accuracy",
            {"core.kind": "elman", "task.vocab_size": tuple(k for k in POWERS if k != EXCEPTION)},
            ENCODING,
            cells="task.vocab_size",
        ),
    ),
    Claim(
        name="no_help_elman_8192",
        statement="At K = 8,192 the encoded Elman network is not above the vanilla one.",
        source=V1,
        predicate=Differs(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": "elman", "task.vocab_size": EXCEPTION},
            ENCODING,
            cells="task.vocab_size",
            required=(EXCEPTION,),
            sign=-1,
        ),
    ),
    *claims_about(
        "gain_grows_{core}",
        "The {core}'s gain from the encoding grows with the vocabulary (our reading: one condition "
        "stays above 95 % and the other degrades)",
        lambda here: Grows("token_accuracy", here, ENCODING, along="task.vocab_size"),
        kinds("gru", "lstm"),
        {"gru": V3, "lstm": (V1, V3)},
    ),
    *claims_about(
        "distance_falls_{core}",
        "The encoding lowers the {core}'s Damerau–Levenshtein distance",
        lambda here: Differs("damerau_levenshtein", here, ENCODING, "task.vocab_size", sign=-1),
        kinds("gru", "lstm", "s4d"),
        V5,
    ),
    _masters("gru", 32, 256, (V3, V5)),
    _masters("lstm", 256, 16_384, (V3, V5)),
    _masters("lstm", 2, 16_384, V1),
    _limit("elman", 128),
    _limit("gru", 512),
)
FIGURE = lay_out("task.vocab_size", "token_accuracy", "damerau_levenshtein", x_base=2)

VOCABULARY_SIZE = Experiment(
    name="vocabulary_size",
    scales=grids(
        {},
        # Minutes on two CPU cores: the networks of `small`, for a quarter of its updates.
        demo=({**MASTERY, "training.iterations": 5_000}, cores(lstm=(32, 192))),
        # A night on two CPU cores, up to the largest K that the encoded network still masters.
        small=(
            MASTERY,
            cores(
                gru=(4, 8, 16, 32, 64),
                lstm=(16, 32, 64, 128, 256),
                elman=(4, 8, 16, 32, 64),
                s4d=(16, 32, 64, 128, 256),
            ),
        ),
        paper=({}, each("task.vocab_size", POWERS), kinds(*KINDS)),
        seeds={"demo": SMALL_SEEDS},
    ),
    claims=with_primary(
        CLAIMS, "encoding_helps_gru", "encoding_helps_lstm", "gain_grows_gru", "gain_grows_lstm"
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
)

LONGER = Place("v1", "section 4.1 and Fig. 3")
TWO_IDS = {"task.vocab_size": 2}
RECURRENT = ("elman", "gru", "lstm")
LENGTHS = lay_out("task.length", "token_accuracy", x_base=2)

INPUT_LENGTH = Experiment(
    name="input_length",
    scales=grids(
        TWO_IDS,
        crossed(kinds(*RECURRENT), encodings()),
        demo=(
            # Two tokens of length 8 make 256 sequences: some must be left to train on.
            {**brief(length=32, size=128, updates=600), "task.num_held_out": 64},
            each("task.length", [8, 16, 32]),
        ),
        # An hour or two on two CPU cores.
        small=({**SMALL, "task.length": 16}, each("task.length", [16, 24, 32])),
        paper=({}, each("task.length", [64, 128, 256, 512])),
    ),
    claims=with_primary(
        (
            *claims_about(
                "no_help_{core}",
                "At K = 2, the encoding does not help the {core} with longer inputs",
                lambda here: no_gain({**here, **TWO_IDS}, ENCODING, "task.length"),
                kinds(*RECURRENT),
                LONGER,
            ),
            *claims_about(
                "below_{core}",
                "The encoded {core} scores below the vanilla one at K = 2",
                lambda here: no_gain({**here, **TWO_IDS}, ENCODING, "task.length", 0.0),
                kinds("elman", "gru"),
                LONGER,
            ),
            *claims_about(
                "{core}_degrades_{encoding}",
                "The {encoding} {core}'s token accuracy falls with the input length",
                lambda here: falls({**here, **TWO_IDS}, along="task.length"),
                crossed(kinds("lstm"), encodings()),
                LONGER,
            ),
        ),
        "no_help_*",
    ),
    figure=LENGTHS,
    labels=labels(LENGTHS, *RECURRENT),
)


def _of_bits(bits: int, *sizes: int) -> list[Settings]:
    """Pair each vocabulary with the length at which K^L is 2^bits."""
    return [
        {"task.vocab_size": size, "task.length": bits // (size.bit_length() - 1)} for size in sizes
    ]


SIZES = lay_out("task.vocab_size", "token_accuracy", x_base=2)

CONSTANT_INFORMATION = Experiment(
    name="constant_information",
    scales=grids(
        {"core.kind": "lstm"},
        # Minutes, and an hour or two, on two CPU cores.
        demo=(brief(length=8, size=128, updates=450), _of_bits(96, 4, 8, 64)),
        small=(SMALL, _of_bits(48, 2, 4, 8, 64, 4096)),
        paper=({}, _of_bits(768, 2, 4, 8, 64, 4096)),
    ),
    claims=with_primary(
        [gain_grows("lstm", Place("v1", "section 4.1 and Fig. 4"))], "gain_grows_lstm"
    ),
    figure=SIZES,
    labels={
        **labels(SIZES, "lstm"),
        "task.vocab_size": "Vocabulary size K, with L such that K^L is constant",
    },
)

DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
MARGIN = 0.01
"""A difference of cosines below this counts as no discernible effect."""

about = partial(claims_about, source=Place("v1", "appendix B.3 and Fig. 9"))
INFINITE_CLAIMS = (
    *about(
        "no_effect_{core}",
        "The encoding has no discernible effect on the {core}'s cosine similarity, in any "
        "dimension",
        lambda here: Equivalent(
            "cosine_similarity", here, ENCODING, "task.dimension", PLANNED, MARGIN, OURS
        ),
        kinds("gru", "lstm"),
    ),
    *about(
        "harm_{core}",
        "From 64 dimensions on, the encoding lowers the {core}'s cosine similarity",
        lambda here: Differs(
            "cosine_similarity",
            {**here, "task.dimension": DIMENSIONS[3:]},
            ENCODING,
            cells="task.dimension",
            sign=-1,
        ),
        kinds("elman"),
    ),
    *about(
        "falls_{core}_{encoding}",
        "The {encoding} {core}'s cosine similarity falls with the dimension",
        lambda here: falls(here, "cosine_similarity", "task.dimension"),
        crossed(kinds("gru", "lstm"), encodings()),
    ),
)

INFINITE_VOCABULARY = Experiment(
    name="infinite_vocabulary",
    scales=grids(
        {"task.kind": "infinite_vocabulary"},
        crossed(kinds(*RECURRENT), encodings()),
        # Minutes, and an hour or two, on two CPU cores.
        demo=(brief(length=8, size=128, updates=750), each("task.dimension", [8, 64])),
        small=(SMALL, each("task.dimension", [8, 32, 64])),
        paper=({"task.length": 64}, each("task.dimension", DIMENSIONS)),
    ),
    claims=with_primary(INFINITE_CLAIMS, "no_effect_*", "harm_elman"),
    figure=lay_out("task.dimension", "cosine_similarity", x_base=2, table="cosine"),
    labels={
        "task.dimension": "Dimension d",
        **named("core.kind", *RECURRENT, "encoding.kind", "none", "sinusoidal"),
        "cosine_similarity": "Cosine similarity",
    },
)
