"""Does a pretrained network learn new words better with the encoding?

Source: Morita (2024), version 1, figure 5 and section 4.2.
"""

from collections.abc import Sequence

from pernn.lab.runs import RunSpec

from .comparisons import ACCURACY, OURS, PAPER_SETTING, POINT, lay_out, named
from .experiment import Experiment
from .grids import (
    ENCODING,
    LSTM,
    POWERS,
    SEEDS,
    SMALL,
    SMALL_SEEDS,
    VOCABULARY,
    Settings,
    brief,
    encodings,
    grid,
)
from .predicates import Claim, Contrast, Differs, DiffersMore, Equivalent, Place, with_primary

STAGE = "pretraining.task.kind"
"""What the network learnt first; absent where it learns all ids from the beginning."""
EXTENDED = "reverse_ordering"
SIZES = POWERS[6:]
"""Numbers of ids after the extension, 2K. The paper names 128, 256, 512 and says "and up"."""


def _both_ways(
    sizes: Sequence[int], base: Settings, seeds: Sequence[int] = SEEDS
) -> tuple[RunSpec, ...]:
    """Cross sizes and encodings, each pretrained on half of the ids, and from scratch."""
    ids = [{VOCABULARY: size, "task.num_known": size // 2} for size in sizes]
    kinds = {"task.kind": "vocabulary_extension", **LSTM}
    specs = grid({**kinds, **base}, ids, encodings(), seeds=seeds)
    return tuple(one for spec in specs for one in (_pretrained(spec), spec))


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


V1 = Place("v1", "section 4.2 and Fig. 5")
UP_TO_512 = {VOCABULARY: tuple(size for size in POWERS if size <= 512)}
"""The text compares extension and training from scratch for 2K = 128 … 512."""
FROM_SCRATCH = {**PAPER_SETTING, **LSTM, STAGE: None}
CLAIMS = (
    Claim(
        "encoding_helps_extension",
        "The encoding raises the accuracy on new tokens after an extension of the vocabulary.",
        V1,
        Differs(ACCURACY, {**LSTM, STAGE: EXTENDED}, ENCODING, VOCABULARY),
    ),
    Claim(
        "marginal_from_scratch",
        "From scratch, the difference between encoded and vanilla is marginal for 2K = 128 … 512.",
        V1,
        Equivalent(ACCURACY, FROM_SCRATCH, ENCODING, VOCABULARY, (128, 256, 512), POINT, OURS),
    ),
    Claim(
        "gain_larger_under_extension",
        "Up to 2K = 512, the encoding helps more under extension than from scratch.",
        V1,
        DiffersMore(
            ACCURACY, {**LSTM, **UP_TO_512}, ENCODING, Contrast(STAGE, EXTENDED, None), VOCABULARY
        ),
    ),
)

VOCABULARY_EXTENSION = Experiment(
    name="vocabulary_extension",
    scales={
        # Minutes, and an hour or two, on two CPU cores.
        "demo": lambda: _both_ways(
            [8, 16], {**brief(length=16, size=64, updates=500), "task.num_held_out": 512}
        ),
        "small": lambda: _both_ways([64, 192], SMALL, SMALL_SEEDS),
        "paper": lambda: _both_ways(SIZES, {}),
    },
    claims=with_primary(CLAIMS, "encoding_helps_extension", "gain_larger_under_extension"),
    figure=lay_out(VOCABULARY, ACCURACY, panels=STAGE, x_base=2),
    labels={
        VOCABULARY: "Vocabulary size after the extension, 2K",
        STAGE: "Learnt first",
        EXTENDED: "K ids, then extended",
        "None": "All 2K ids from scratch",
        **named("encoding.kind", "none", "sinusoidal"),
        ACCURACY: "Token accuracy, new ids only",
    },
)
