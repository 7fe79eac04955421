"""Does the encoding help where the inputs' order is irrelevant?

Source: Morita (2024), versions 2 and 3, appendix A.2 and figure 8; version 1, appendix C.2 and
figure 12.
"""

from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import CORES, PAPER_SETTING, Source, by_core, falls, labels
from .experiment import Experiment
from .grids import (
    DEMO_TRAINING,
    ENCODING,
    POWERS,
    SMALL,
    SMALL_SEEDS,
    each,
    encodings,
    grid,
    widths,
)
from .predicates import AtLeast, Claim, Contrast, Differs, DiffersMore, Place, with_primary

KINDS = ["elman", "gru", "lstm"]
LARGE = tuple(size for size in POWERS if size >= 512)
CONDITIONS = [(core, encoding) for core in KINDS for encoding in ("none", "sinusoidal")]
BEYOND = tuple(size for size in POWERS if size > 512)
TASKS = each("task.kind", ["sorting", "reverse_ordering"])
"""Sorting, and the task that the text compares it with, at the same settings."""
SORTING = {"task.kind": "sorting"}
V1 = Place("v1", "appendix C.2 and Fig. 12")
V3 = Place("v3", "appendix A.2 and Fig. 8")


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores: a quarter of the length."""
    return grid(
        {
            "task.length": 16,
            **widths(128),
            **DEMO_TRAINING,
            "training.iterations": 380,
        },
        each("task.vocab_size", [4, 16, 64]),
        TASKS,
        each("core.kind", KINDS),
        encodings(),
    )


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour or two on two CPU cores."""
    vocabularies = {"elman": (8, 64), "gru": (16, 64), "lstm": (64, 192)}
    return grid(
        SMALL,
        [
            {"core.kind": core, "task.vocab_size": size}
            for core, sizes in vocabularies.items()
            for size in sizes
        ],
        TASKS,
        encodings(),
        seeds=SMALL_SEEDS,
    )


def paper() -> tuple[RunSpec, ...]:
    """Return the published grid, for GPUs."""
    return grid(
        {},
        each("task.vocab_size", POWERS),
        TASKS,
        each("core.kind", KINDS),
        encodings(),
    )


def _title(core: str, encoding: str) -> str:
    return f"{'vanilla' if encoding == ENCODING.baseline else 'encoded'} {CORES[core]}"


def _smaller_than_in_reversing(core: str, source: Source) -> Claim:
    return Claim(
        name=f"smaller_gain_{core}",
        statement=f"The {CORES[core]} gains less from the encoding in sorting than in reversing.",
        source=source,
        predicate=DiffersMore(
            "token_accuracy",
            {"core.kind": core},
            ENCODING,
            Contrast("task.kind", treated="sorting", baseline="reverse_ordering"),
            cells="task.vocab_size",
            sign=-1,
        ),
    )


def _falls(core: str, encoding: str) -> Claim:
    return Claim(
        name=f"falls_{core}_{encoding}",
        statement=f"The {_title(core, encoding)}'s token accuracy falls with K from K = 512 on.",
        source=V1,
        predicate=falls(
            {**SORTING, "core.kind": core, "encoding.kind": encoding, "task.vocab_size": LARGE}
        ),
    )


def _tolerates(core: str) -> Claim:
    return Claim(
        name=f"tolerates_large_{core}",
        statement=f"Beyond K = 512 the encoded {CORES[core]} is above the vanilla one.",
        source=V1,
        predicate=Differs(
            "token_accuracy",
            {**SORTING, "core.kind": core, "task.vocab_size": BEYOND},
            ENCODING,
            cells="task.vocab_size",
        ),
    )


def _ascends(core: str, encoding: str) -> Claim:
    return Claim(
        name=f"ascends_{core}_{encoding}",
        statement=f"At every K, over 99.9 % of the {_title(core, encoding)}'s neighbouring outputs "
        "ascend (pairs, as the published program counts).",
        source=V1,
        predicate=AtLeast(
            "ascending_pair_share",
            {**PAPER_SETTING, **SORTING, "core.kind": core, "encoding.kind": encoding},
            cells="task.vocab_size",
            required=POWERS,
            threshold=0.999,
            threshold_origin="the text's",
        ),
    )


def _helps(core: str) -> Claim:
    return Claim(
        name=f"encoding_helps_{core}",
        statement=f"In sorting, the encoding raises the {CORES[core]}'s token accuracy.",
        source=(V3, V1),
        predicate=Differs(
            "token_accuracy", {**SORTING, "core.kind": core}, ENCODING, cells="task.vocab_size"
        ),
    )


ELMAN_AT_64 = Claim(
    name="elman_gains_at_64",
    statement="At K = 64 the encoding raises the Elman network's accuracy slightly (the text: by "
    "2.09 points on average).",
    source=V1,
    predicate=Differs(
        "token_accuracy",
        {**SORTING, "core.kind": "elman", "task.vocab_size": 64},
        ENCODING,
        cells="task.vocab_size",
        required=(64,),
    ),
    paper_value=0.0209,
)

FIGURE = replace(
    by_core(
        "task.vocab_size",
        "token_accuracy",
        "ascending_pair_share",
        "ascending_sequence_share",
        x_base=2,
    ),
    rows="task.kind",
)

EXPERIMENT = Experiment(
    name="sorting",
    scales={"demo": demo, "small": small, "paper": paper},
    claims=with_primary(
        (
            _helps("gru"),
            _helps("lstm"),
            ELMAN_AT_64,
            _smaller_than_in_reversing("elman", V1),
            *(_smaller_than_in_reversing(core, (V3, V1)) for core in ("gru", "lstm")),
            *(_tolerates(core) for core in ("gru", "lstm")),
            *(_falls(*condition) for condition in CONDITIONS),
            *(_ascends(*condition) for condition in CONDITIONS),
        ),
        "smaller_gain_gru",
        "smaller_gain_lstm",
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS, "sorting", "reverse_ordering"),
)
