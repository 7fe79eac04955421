"""The vocabulary or input that a network handles, with and without encoding.

`constant_information` compares the two: the number of possible inputs, K^L, is the same everywhere,
2^768 at paper scale, as 768 = 2·384 = 3·256 = 6·128 = 12·64. (The text prints 2^796 for the first
one: a slip, as 4^384 is 2^768.) `infinite_vocabulary` has vectors, of which there are infinitely
many. In `vocabulary_extension` a pretrained network learns new ids.

Source: Morita (2024), versions 2 and 3, figure 2; version 1, figures 2, 3, 4 and 5, section 4.2,
appendix B.3 and figure 9; version 5, section 4.1.
"""

from collections.abc import Callable
from functools import partial

from pernn.lab.runs import RunSpec

from .comparisons import (
    ACCURACY,
    OURS,
    PAPER_SETTING,
    POINT,
    WORDS,
    Source,
    claims_about,
    encoding_helps,
    falls,
    gain_grows,
    lay_out,
    no_gain,
)
from .experiment import Experiment
from .grids import (
    ENCODED,
    ENCODING,
    LSTM,
    MASTERY,
    POWERS,
    SMALL,
    SMALL_SEEDS,
    UPDATES,
    VANILLA,
    VOCABULARY,
    Settings,
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
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Equivalent,
    Grows,
    LimitNear,
    Place,
    with_primary,
)

V1 = Place("v1", "section 4.1 and Fig. 2")
V3 = Place("v3", "section 2.1 and Fig. 2")
V5 = Place("v5", "section 4.1")
KINDS = ("elman", "gru", "lstm", "s4d")
MASTERED = 0.95
EXCEPTION = 8_192
"""The one vocabulary at which version 1 sees no advantage of the encoded Elman network."""
USUAL = {"core.kind": "elman", VOCABULARY: tuple(size for size in POWERS if size != EXCEPTION)}
UNUSUAL = {**PAPER_SETTING, "core.kind": "elman", VOCABULARY: EXCEPTION}


def _masters(core: str, smallest: int, largest: int, source: Source) -> Claim:
    here = {**PAPER_SETTING, "core.kind": core, **ENCODED}
    sizes = tuple(size for size in POWERS if smallest <= size <= largest)
    return Claim(
        f"masters_{core}_{smallest}_{largest}",
        f"The encoded {WORDS[core]} reaches 95 % of tokens for K = {smallest} … {largest:,}.",
        source,
        AtLeast(ACCURACY, here, VOCABULARY, sizes, MASTERED, "the text's"),
    )


def _limit(core: str, near: int) -> Claim:
    here = {**PAPER_SETTING, "core.kind": core, **ENCODED}
    origin = "ours: what the text calls success elsewhere; of limits it gives none"
    return Claim(
        f"limit_{core}",
        f"The encoded {WORDS[core]} reaches the limit of its capacity at K = {near}.",
        V1,
        LimitNear(ACCURACY, here, VOCABULARY, POWERS, MASTERED, near, origin),
    )


CLAIMS = (
    *claims_about(
        "vanilla_degrades_{core}",
        "The vanilla {core}'s token accuracy falls as the vocabulary grows",
        falls(VANILLA),
        kinds("gru", "lstm"),
        {"gru": (V3, V5), "lstm": (V3, V5, V1)},
    ),
    encoding_helps("gru", (V3, V5, V1)),
    encoding_helps("lstm", (V3, V5, V1)),
    encoding_helps("s4d", V5),
    Claim(
        "encoding_helps_elman",
        "The encoding raises the Elman network's token accuracy, except at K = 8,192.",
        V1,
        Differs(ACCURACY, USUAL, ENCODING, VOCABULARY),
    ),
    Claim(
        "no_help_elman_8192",
        "At K = 8,192 the encoded Elman network is not above the vanilla one.",
        V1,
        Differs(ACCURACY, UNUSUAL, ENCODING, VOCABULARY, required=(EXCEPTION,), sign=-1),
    ),
    *claims_about(
        "gain_grows_{core}",
        "The {core}'s gain from the encoding grows with the vocabulary (our reading: one condition "
        "stays above 95 % and the other degrades)",
        Grows(ACCURACY, {}, ENCODING, along=VOCABULARY),
        kinds("gru", "lstm"),
        {"gru": V3, "lstm": (V1, V3)},
    ),
    *claims_about(
        "distance_falls_{core}",
        "The encoding lowers the {core}'s Damerau–Levenshtein distance",
        Differs("damerau_levenshtein", {}, ENCODING, VOCABULARY, sign=-1),
        kinds("gru", "lstm", "s4d"),
        V5,
    ),
    _masters("gru", 32, 256, (V3, V5)),
    _masters("lstm", 256, 16_384, (V3, V5)),
    _masters("lstm", 2, 16_384, V1),
    _limit("elman", 128),
    _limit("gru", 512),
)
FEWER, MORE = (4, 8, 16, 32, 64), (16, 32, 64, 128, 256)

VOCABULARY_SIZE = Experiment(
    name="vocabulary_size",
    scales=grids(
        {},
        # Minutes on two CPU cores: the networks of `small`, for a quarter of its updates.
        demo=({**MASTERY, UPDATES: 5_000}, cores(lstm=(32, 192))),
        # A night on two CPU cores, up to the largest K that the encoded network still masters.
        small=(MASTERY, cores(gru=FEWER, lstm=MORE, elman=FEWER, s4d=MORE)),
        paper=({}, vocabularies(*POWERS), kinds(*KINDS)),
        seeds={"demo": SMALL_SEEDS},
    ),
    claims=with_primary(
        CLAIMS, "encoding_helps_gru", "encoding_helps_lstm", "gain_grows_gru", "gain_grows_lstm"
    ),
    figure=lay_out(VOCABULARY, ACCURACY, "damerau_levenshtein", x_base=2),
)

TWO_IDS = {VOCABULARY: 2}
RECURRENT = ("elman", "gru", "lstm")

longer = partial(claims_about, source=Place("v1", "section 4.1 and Fig. 3"))
LONGER_CLAIMS = (
    *longer(
        "no_help_{core}",
        "At K = 2, the encoding does not help the {core} with longer inputs",
        no_gain(TWO_IDS, ENCODING, "task.length"),
        kinds(*RECURRENT),
    ),
    *longer(
        "below_{core}",
        "The encoded {core} scores below the vanilla one at K = 2",
        no_gain(TWO_IDS, ENCODING, "task.length", 0.0),
        kinds("elman", "gru"),
    ),
    *longer(
        "{core}_degrades_{encoding}",
        "The {encoding} {core}'s token accuracy falls with the input length",
        falls(TWO_IDS, along="task.length"),
        crossed(kinds("lstm"), encodings()),
    ),
)

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
    claims=with_primary(LONGER_CLAIMS, "no_help_*"),
    figure=lay_out("task.length", ACCURACY, x_base=2),
)


def _of_bits(bits: int, *sizes: int) -> list[Settings]:
    """Pair each vocabulary with the length at which K^L is 2^bits."""
    return [{VOCABULARY: size, "task.length": bits // (size.bit_length() - 1)} for size in sizes]


CONSTANT = Place("v1", "section 4.1 and Fig. 4")
SIZES = lay_out(VOCABULARY, ACCURACY, x_base=2)

CONSTANT_INFORMATION = Experiment(
    name="constant_information",
    scales=grids(
        LSTM,
        # Minutes, and an hour or two, on two CPU cores.
        demo=(brief(length=8, size=128, updates=450), _of_bits(96, 4, 8, 64)),
        small=(SMALL, _of_bits(48, 2, 4, 8, 64, 4096)),
        paper=({}, _of_bits(768, 2, 4, 8, 64, 4096)),
    ),
    claims=with_primary([gain_grows("lstm", CONSTANT)], "gain_grows_lstm"),
    figure=SIZES,
    labels={VOCABULARY: "Vocabulary size K, with L such that K^L is constant"},
)

SIMILARITY, DIMENSION = "cosine_similarity", "task.dimension"
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
MARGIN = 0.01
"""A difference of cosines below this counts as no discernible effect."""

about = partial(claims_about, source=Place("v1", "appendix B.3 and Fig. 9"))
INFINITE_CLAIMS = (
    *about(
        "no_effect_{core}",
        "The encoding has no discernible effect on the {core}'s cosine similarity, in any "
        "dimension",
        Equivalent(SIMILARITY, {}, ENCODING, DIMENSION, PLANNED, MARGIN, OURS),
        kinds("gru", "lstm"),
    ),
    *about(
        "harm_{core}",
        "From 64 dimensions on, the encoding lowers the {core}'s cosine similarity",
        Differs(SIMILARITY, {DIMENSION: DIMENSIONS[3:]}, ENCODING, DIMENSION, sign=-1),
        kinds("elman"),
    ),
    *about(
        "falls_{core}_{encoding}",
        "The {encoding} {core}'s cosine similarity falls with the dimension",
        falls({}, SIMILARITY, DIMENSION),
        crossed(kinds("gru", "lstm"), encodings()),
    ),
)

INFINITE_VOCABULARY = Experiment(
    name="infinite_vocabulary",
    scales=grids(
        {"task.kind": "infinite_vocabulary"},
        crossed(kinds(*RECURRENT), encodings()),
        # Minutes, and an hour or two, on two CPU cores.
        demo=(brief(length=8, size=128, updates=750), each(DIMENSION, [8, 64])),
        small=(SMALL, each(DIMENSION, [8, 32, 64])),
        paper=({"task.length": 64}, each(DIMENSION, DIMENSIONS)),
    ),
    claims=with_primary(INFINITE_CLAIMS, "no_effect_*", "harm_elman"),
    figure=lay_out(DIMENSION, SIMILARITY, x_base=2, table="cosine"),
    labels={DIMENSION: "Dimension d", SIMILARITY: "Cosine similarity"},
)

STAGE = "pretraining.task.kind"
"""What the network learnt first; absent where it learns all ids from the beginning."""
EXTENDED = "reverse_ordering"
TWICE = POWERS[6:]
"""Numbers of ids after the extension, 2K. The paper names 128, 256, 512 and says "and up"."""


def _ids(*sizes: int) -> list[Settings]:
    """Make one condition per size, of which half is known before."""
    return [{VOCABULARY: size, "task.num_known": size // 2} for size in sizes]


def _both_ways(specs: Callable[[], tuple[RunSpec, ...]]) -> tuple[RunSpec, ...]:
    """Return each trial pretrained on half of the ids, and from scratch."""
    return tuple(one for spec in specs() for one in (_pretrained(spec), spec))


def _pretrained(spec: RunSpec) -> RunSpec:
    """Put a stage before it that knows half of the ids and lasts as long."""
    task = spec.task.dump()
    known = {
        "kind": EXTENDED,
        "vocab_size": task["num_known"],
        **{name: task[name] for name in ("length", "num_held_out")},
    }
    stage = {"task": known, "training": spec.training.dump()}
    return spec.override({"pretraining": stage})


EXTENSION = Place("v1", "section 4.2 and Fig. 5")
UP_TO_512 = {VOCABULARY: tuple(size for size in POWERS if size <= 512)}
"""The text compares extension and training from scratch for 2K = 128 … 512."""
FROM_SCRATCH = {**PAPER_SETTING, **LSTM, STAGE: None}
EXTENSION_CLAIMS = (
    Claim(
        "encoding_helps_extension",
        "The encoding raises the accuracy on new tokens after an extension of the vocabulary.",
        EXTENSION,
        Differs(ACCURACY, {**LSTM, STAGE: EXTENDED}, ENCODING, VOCABULARY),
    ),
    Claim(
        "marginal_from_scratch",
        "From scratch, the difference between encoded and vanilla is marginal for 2K = 128 … 512.",
        EXTENSION,
        Equivalent(ACCURACY, FROM_SCRATCH, ENCODING, VOCABULARY, (128, 256, 512), POINT, OURS),
    ),
    Claim(
        "gain_larger_under_extension",
        "Up to 2K = 512, the encoding helps more under extension than from scratch.",
        EXTENSION,
        DiffersMore(
            ACCURACY, {**LSTM, **UP_TO_512}, ENCODING, Contrast(STAGE, EXTENDED, None), VOCABULARY
        ),
    ),
)

EXTENSIONS = grids(
    {"task.kind": "vocabulary_extension", **LSTM},
    # Minutes, and an hour or two, on two CPU cores.
    demo=({**brief(length=16, size=64, updates=500), "task.num_held_out": 512}, _ids(8, 16)),
    small=(SMALL, _ids(64, 192)),
    paper=({}, _ids(*TWICE)),
)

VOCABULARY_EXTENSION = Experiment(
    name="vocabulary_extension",
    scales={scale: partial(_both_ways, specs) for scale, specs in EXTENSIONS.items()},
    claims=with_primary(EXTENSION_CLAIMS, "encoding_helps_*", "gain_larger_*"),
    figure=lay_out(VOCABULARY, ACCURACY, panels=STAGE, x_base=2),
    labels={
        VOCABULARY: "Vocabulary size after the extension, 2K",
        STAGE: "Learnt first",
        EXTENDED: "K ids, then extended",
        "None": "All 2K ids from scratch",
        ACCURACY: "Token accuracy, new ids only",
    },
)
