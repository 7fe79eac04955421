"""Must it be sines and cosines, and what must an encoding carry?

The `learned` encoding is confounded with its norm: its rows start at a norm of about √D (22.6 at
D = 512), while the rows of the others have norm 1. It is kept as published;
`--set encoding.normalize=true` scales its rows to norm 1.

`double_vanilla`: do more parameters help? `carry` and `clock_period`: time, a key, a drive, and how
finely. Their arms are of norm 1 and 64 wide but for the clocks of two numbers. The rate stays
constant after the warm-up, as a cosine would mix up the late phase with its own; what counts is how
soon 0.9 of fresh training sequences are right.

Source: Morita (2024), versions 2 and 3, appendix C and figures 10 and 11; version 5, appendix C for
the parameters; `carry` and `clock_period` are ours, docs/evidence/plans/carry.md.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .comparisons import ACCURACY, LABELS, WORDS, claims_about, lay_out, no_gain, together
from .experiment import Experiment
from .grids import (
    DEMO_TRAINING,
    LSTM,
    MASTERY_TRAINING,
    POWERS,
    SMALL,
    UPDATES,
    VOCABULARY,
    Settings,
    brief,
    cores,
    each,
    encodings,
    grids,
    vocabularies,
    widths,
)
from .predicates import (
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Place,
    Sooner,
    pace_column,
    with_primary,
)

TASKS = {
    "reverse_ordering": ("inputs of one length", Place("v3", "appendix C and Fig. 10")),
    "variable_length": ("inputs of several lengths", Place("v3", "appendix C and Fig. 11")),
}
V5 = Place("v5", "appendix D")
KINDS = ("sinusoidal", "learned", "random")


def _lengths(min_length: int, num_held_out: int = 1024) -> list[Settings]:
    """Return the two tasks: inputs of one length, and of any from `min_length` up to it."""
    fixed, variable = TASKS
    several = {"task.min_length": min_length, "task.num_held_out": num_held_out}
    return [{"task.kind": fixed}, {"task.kind": variable, **several}]


def _above(name: str, statement: str, task: str, better: str, worse: str) -> Claim:
    inputs, source = TASKS[task]
    contrast = Contrast("encoding.kind", treated=better, baseline=worse)
    return Claim(
        f"{name}_{task}",
        f"With {inputs}, the {better} encoding {statement}.",
        (source, V5),
        Differs(ACCURACY, {"task.kind": task}, contrast, VOCABULARY),
    )


def _helps(task: str, kind: str) -> Claim:
    return _above(f"{kind}_helps", "raises the LSTM's token accuracy", task, kind, "none")


def _larger_with_variable_length(other: str) -> Claim:
    contrast = Contrast("encoding.kind", treated="sinusoidal", baseline=other)
    tasks = Contrast("task.kind", treated="variable_length", baseline="reverse_ordering")
    return Claim(
        f"advantage_over_{other}_larger_with_variable_length",
        f"The sinusoidal encoding's advantage over the {other} one is larger where the input "
        "length varies.",
        (TASKS["variable_length"][1], V5),
        DiffersMore(ACCURACY, {}, contrast, tasks, VOCABULARY),
    )


CLAIMS = (
    *(_helps("reverse_ordering", kind) for kind in KINDS),
    _helps("variable_length", "sinusoidal"),
    *(
        _above(f"sinusoidal_above_{other}", f"is above the {other} one", task, "sinusoidal", other)
        for task in TASKS
        for other in KINDS[1:]
    ),
    *(_larger_with_variable_length(other) for other in KINDS[1:]),
)

ALTERNATIVE_ENCODINGS = Experiment(
    name="alternative_encodings",
    scales=grids(
        LSTM,
        encodings("none", *KINDS),
        # Minutes, and an hour, on two CPU cores.
        demo=(
            {**brief(length=24, size=128, updates=450), VOCABULARY: 16},
            _lengths(12, num_held_out=128),
        ),
        small=({**SMALL, VOCABULARY: 192}, _lengths(4, num_held_out=256)),
        paper=({VOCABULARY: 16_384}, _lengths(32)),
    ),
    claims=with_primary(CLAIMS, "*_helps_reverse_ordering", "sinusoidal_helps_variable_length"),
    figure=lay_out("encoding.kind", ACCURACY, panels="task.kind", contrast=None),
    labels={
        "reverse_ordering": "Fixed length",
        "none": LABELS["none"],
        "sinusoidal": "Sinusoidal",
    },
)

DOUBLED = Contrast("encoding.kind", treated="repeated_embedding", baseline="none")
ENCODED = Contrast("encoding.kind", treated="sinusoidal", baseline="repeated_embedding")
RULES = each("task.kind", ["reverse_ordering", "sorting"])
DOUBLE_CLAIMS = (
    *claims_about(
        "double_no_gain_{task}",
        "In {task}, the double vanilla LSTM does not improve on the vanilla one",
        no_gain({}, DOUBLED, VOCABULARY),
        RULES,
        Place("v5", "appendix C"),
    ),
    *claims_about(
        "encoding_beats_double_{task}",
        "In {task}, the encoded LSTM is above the double vanilla one: its gain is not due to the "
        "parameters",
        Differs(ACCURACY, {}, ENCODED, VOCABULARY),
        RULES,
        Place("v5", "appendix C"),
    ),
)

DOUBLE_VANILLA = Experiment(
    name="double_vanilla",
    scales=grids(
        LSTM,
        encodings("none", "repeated_embedding", "sinusoidal"),
        demo=(brief(length=24, size=128, updates=300), vocabularies(8, 16), RULES),
        # An hour on two CPU cores. Two thirds of the trials are those of `sorting`.
        small=(SMALL, vocabularies(64, 192), RULES),
        paper=({}, vocabularies(*POWERS), RULES),
    ),
    claims=with_primary(
        DOUBLE_CLAIMS, "double_no_gain_reverse_ordering", "encoding_beats_double_reverse_ordering"
    ),
    figure=lay_out(VOCABULARY, ACCURACY, panels="task.kind", contrast=DOUBLED, x_base=2),
)

FREQUENCIES, CODES = "encoding.frequencies", "task.codes"
COLUMNS = ("encoding.kind", "encoding.masked", FREQUENCIES, CODES)
"""What tells arms apart."""
LENGTH = 8
CONSTANT_RATE = {"task.length": LENGTH, **widths(64), "training.schedule": "constant"}
DEMO: Settings = {**DEMO_TRAINING, UPDATES: 600, "training.log_interval": 20}
OCTAVES = (4, 8, 16, 32, 64)
"""Shortest periods of the octaves, in steps."""
LEVEL = 0.9
HALF = {"gru": 0.87, "lstm": 0.73}
"""Half of the published gain, 0.41 (GRU, K 64) and 0.9 (LSTM, K 192) in log2, as a factor."""


def _waves(*periods: float) -> Settings:
    frequencies = [round(2 * math.pi / period, 6) for period in periods]
    return {"encoding.kind": "sinusoidal", FREQUENCIES: frequencies}


def _octave(shortest: int) -> Settings:
    return _waves(*(shortest * 2 ** (pair / 32) for pair in range(32)))


def _codes(kind: str) -> Settings:
    return {"task.kind": "coded_reversal", CODES: kind, "encoding.kind": "none"}


ARMS: Mapping[str, Settings] = {
    "None": {"encoding.kind": "none"},
    "Constant": {"encoding.kind": "constant"},
    "Random table": {"encoding.kind": "random"},
    "Sinusoids": {"encoding.kind": "sinusoidal"},
    "Input phase only": {"encoding.kind": "sinusoidal", "encoding.masked": "output"},
    "Output phase only": {"encoding.kind": "sinusoidal", "encoding.masked": "input"},
    "Clock, period 4L": _waves(4 * LENGTH),
    "Clock, 2L": _waves(2 * LENGTH),
    "Clock, L (aliased)": _waves(LENGTH),
    "Clock, L/2 (aliased)": _waves(LENGTH / 2),
    **{f"Octave {first}–{2 * first}": _octave(first) for first in OCTAVES},
    "Noise": _codes("noise"),
    "Noise, same in a batch": _codes("shared_noise"),
    "Keys, mirrored": _codes("keys"),
    "Keys, not mirrored": _codes("unmirrored_keys"),
    "Sinusoids, any onset": _codes("onset"),
}
"""Name → settings."""


def _values(arm: Settings) -> dict[str, Any]:
    """Return an arm's columns as records have them."""
    found = {column: arm.get(column) for column in COLUMNS}
    return {c: json.dumps(one) if isinstance(one, list) else one for c, one in found.items()}


def _sooner(
    name: str, words: str, treated: Settings, baseline: Settings, core: str, factor: float = 1.0
) -> Claim:
    first, second = _values(treated), _values(baseline)
    shared = {column: one for column, one in first.items() if one == second[column]}
    column, *more = (column for column in COLUMNS if column not in shared)
    contrast = Contrast(
        column,
        treated=first[column],
        baseline=second[column],
        treated_where={column: first[column] for column in more},
        baseline_where={column: second[column] for column in more},
    )
    origin = "ours: half of the published gain, in logarithms" if factor != 1 else ""
    where = {"core.kind": core, **shared}
    return Claim(
        f"{name}_{core}",
        words.format(WORDS[core]) + " (our check).",
        (TASKS["reverse_ordering"][1], V5),
        Sooner(LEVEL, where, contrast, VOCABULARY, factor=factor, factor_origin=origin),
    )


THAN_NONE = {
    "sinusoids": ("Sinusoids", "The sinusoidal encoding lets", ""),
    "constant": ("Constant", "A constant vector lets", "D"),
    "input_phase": ("Input phase only", "The encoding in the input phase alone lets", "S and R"),
    "output_phase": ("Output phase only", "The encoding in the output phase alone lets", "D"),
    "noise": ("Noise", "Fresh noise at every step of every sequence lets", "D"),
    "shared_noise": (
        "Noise, same in a batch",
        "Noise that all sequences of a batch share lets",
        "D and N",
    ),
    "onset": ("Sinusoids, any onset", "Sinusoids that begin at a random position let", "R"),
}
"""Claim → the arm that learns sooner than no encoding, its statement's begin, and accounts."""


THAN = "learn sooner than no encoding"


def _claims(core: str) -> list[Claim]:
    ends = {"": "", "S and R": " (accounts S and R)", "D and N": " (accounts D and N)"}
    return [
        *(
            _sooner(
                name,
                f"{begin} the {{}} {THAN}{ends.get(of, f' (account {of})')}",
                ARMS[arm],
                ARMS["None"],
                core,
            )
            for name, (arm, begin, of) in THAN_NONE.items()
        ),
        _sooner(
            "mirrored",
            "Keys that are shown again with the item asked for let the {} learn sooner than keys "
            "in the order of the inputs (account R)",
            ARMS["Keys, mirrored"],
            ARMS["Keys, not mirrored"],
            core,
        ),
        _sooner(
            "two_numbers",
            "One sine and cosine of period 2L keep at least half of the sinusoids' gain in the {} "
            "(account S)",
            ARMS["Clock, 2L"],
            ARMS["Sinusoids"],
            core,
            HALF[core],
        ),
        _sooner(
            "unaliased",
            "A clock of period 2L lets the {} learn sooner than one of period L/2, which shows "
            "the same four times (account S)",
            ARMS["Clock, 2L"],
            ARMS["Clock, L/2 (aliased)"],
            core,
        ),
    ]


PACE = lay_out(COLUMNS, pace_column(LEVEL), ACCURACY, lines="task.kind", contrast=None, y_base=2)
PRIMARY = ("constant", "*_phase", "noise", "two_numbers", "unaliased", "mirrored")

CARRY = Experiment(
    name="carry",
    scales=grids(
        CONSTANT_RATE,
        [*ARMS.values()],
        demo=(DEMO, cores(gru=4, lstm=4)),
        # A night on two CPU cores.
        small=({**MASTERY_TRAINING, UPDATES: 16_000}, cores(gru=64, lstm=192)),
    ),
    claims=with_primary([*_claims("lstm"), *_claims("gru")], *(f"{name}_lstm" for name in PRIMARY)),
    figure=PACE,
    labels={
        **{name: LABELS[name] for name in ("none", "constant", "random")},
        **together(ARMS, COLUMNS),
        **together(ARMS, [FREQUENCIES]),
        **together(ARMS, [CODES]),
        ", ".join(COLUMNS): "What the input tells beside the token",
        "sinusoidal": "Sinusoidal",
        "reverse_ordering": "The same in every sequence",
        "coded_reversal": "Drawn anew",
        "input": "Masked in the input",
        "output": "Masked in the output",
    },
    rules={"small": "2026-12"},
)

PERIODS = {f"Period {period}": _waves(period) for period in (2, 3, 4, 8, 16)}
CLOCKS: Mapping[str, Settings] = {"None": ARMS["None"], "Sinusoids": ARMS["Sinusoids"], **PERIODS}


def _period_claims(core: str) -> list[Claim]:
    return [
        _sooner(
            arm.lower().replace(" ", "_"),
            f"One sine and cosine of {arm.lower()} let the {{}} {THAN}",
            settings,
            ARMS["None"],
            core,
        )
        for arm, settings in PERIODS.items()
    ]


CLOCK_PERIOD = Experiment(
    name="clock_period",
    scales=grids(
        CONSTANT_RATE,
        [*CLOCKS.values()],
        demo=(DEMO, cores(gru=4)),
        # Ten minutes for the GRU, an hour and a half for the LSTM, on two CPU cores.
        small=(
            MASTERY_TRAINING,
            [
                {"core.kind": "gru", VOCABULARY: 16, UPDATES: 4_000},
                {**LSTM, VOCABULARY: 192, UPDATES: 16_000},
            ],
        ),
    ),
    claims=with_primary(
        [*_period_claims("gru"), *_period_claims("lstm")], "period_2_gru", "period_2_lstm"
    ),
    figure=replace(PACE, x=("encoding.kind", FREQUENCIES), lines="core.kind"),
    labels={
        "none": LABELS["none"],
        **together(CLOCKS, ("encoding.kind", FREQUENCIES)),
        **together(PERIODS, [FREQUENCIES]),
        f"encoding.kind, {FREQUENCIES}": "Clock",
        "sinusoidal": "Sinusoidal",
    },
    rules={"small": "2026-12"},
)
