"""Do recurrent networks need to be told the time, and when?

Gates of the minimal GRU and LSTM and of the gated delta rule see the input alone, so they cannot
count. The linear recurrent unit and S4D decay and turn at fixed rates, whatever they are shown. The
rate is constant, and each network's own: `--tune training.learning_rate=LOW:HIGH:N`.

`transformer` is the reference at the same setting, with which it shares the trials of the GRU and
the LSTM.

In `scaffold` the encoding is there always, never, for the first updates alone, for the second half
alone, or until it is withdrawn from the trained network.

Source: ours; the question is that of Morita (2024), version 3, figure 2, and version 5, section 4;
section 1 of version 3 says that a Transformer relies on an external clock.
"""

from collections.abc import Callable
from functools import partial

from pernn.lab.runs import RunSpec

from .comparisons import (
    ACCURACY,
    OURS,
    PLACE,
    WORDS,
    Source,
    claims_about,
    encoding_helps,
    lay_out,
)
from .experiment import Experiment
from .grids import (
    DEMO_PACED,
    ENCODED,
    ENCODING,
    HOT,
    PAPER_PACED,
    SMALL_PACED,
    TENTH,
    UPDATES,
    VANILLA,
    VOCABULARY,
    at,
    cores,
    crossed,
    encodings,
    grids,
    kinds,
    vocabularies,
)
from .predicates import PLANNED, Claim, Contrast, Differs, DiffersMore, Place, Sooner, with_primary
from .temperature import LEVEL

KINDS = ("elman", "gru", "lstm", "min_gru", "min_lstm", "lru", "s4d", "gated_delta")
PLACES = {"elman": PLACE[1], "s4d": Place("v5", "section 4.1")}
"""Where the paper has a core; of the others it has the question."""
BLIND = {"min_gru": "gru", "min_lstm": "lstm", "gated_delta": "lstm"}
"""Core whose gates do not see the state → one whose gates do."""
UNGATED = ("lru", "s4d")
FIGURE = lay_out("core.kind", ACCURACY)


def _scales(*names: str) -> dict[str, Callable[[], tuple[RunSpec, ...]]]:
    """Return minutes, and a quarter of an hour when tuned, of the start of the training."""
    return grids(
        at(HOT),
        crossed(kinds(*names), encodings()),
        demo=({**DEMO_PACED, UPDATES: 300}, vocabularies(8)),
        small=({**SMALL_PACED, UPDATES: 1_200, "training.log_interval": 20}, vocabularies(32)),
    )


def _gains_more(name: str, core: str, other: str, source: Source, aside: str = "") -> Claim:
    """Claim that a core gains more from the encoding than another."""
    between = Contrast("core.kind", treated=core, baseline=other)
    return Claim(
        name,
        f"The {WORDS[core]}{aside} gains more from the encoding than the {WORDS[other]} (our "
        "check).",
        source,
        DiffersMore(ACCURACY, {}, ENCODING, between, VOCABULARY),
    )


CLAIMS = (
    *(
        _gains_more(f"gains_more_{core}", core, other, PLACE, ", whose gates do not see the state,")
        for core, other in BLIND.items()
    ),
    *claims_about(
        "no_sooner_{core}",
        f"The encoding saves the {{core}} less than a tenth of the updates to {LEVEL}",
        Sooner(LEVEL, {}, ENCODING, VOCABULARY, sign=-1, factor=0.9, factor_origin=OURS),
        kinds(*UNGATED),
        {core: PLACES.get(core, PLACE) for core in UNGATED},
        ours=True,
    ),
    *(encoding_helps(core, PLACES.get(core, PLACE)) for core in KINDS),
)

WHO_NEEDS_A_CLOCK = Experiment(
    name="who_needs_a_clock",
    scales=_scales(*KINDS),
    claims=with_primary(CLAIMS, "gains_more_*", "no_sooner_*"),
    figure=FIGURE,
    rules={"demo": "2026-12", "small": "2026-12"},
)

SOURCE = Place("v3", "section 1")
REFERENCE = "pernn.lab.reference:TransformerConfig"
COMPARED = (REFERENCE, "gru", "lstm")
COMPARISONS = (
    _gains_more("gains_more_than_gru", REFERENCE, "gru", SOURCE),
    _gains_more("gains_more_than_lstm", REFERENCE, "lstm", SOURCE),
    *(encoding_helps(core, SOURCE) for core in COMPARED),
)

TRANSFORMER = Experiment(
    name="transformer",
    scales=_scales(*COMPARED),
    claims=with_primary(COMPARISONS, "gains_more_than_*"),
    figure=FIGURE,
    rules={"demo": "2026-12", "small": "2026-12"},
)

WHEN = "training.encoding_schedule"
SCHEDULES = {"early": "Faded out", "late": "Second half", "withdrawn": "Withdrawn at the end"}
COLLAPSE = 0.1
"""A loss of token accuracy of more than this counts as a collapse."""


def _against_never(when: str) -> Contrast:
    return Contrast(WHEN, when, None, treated_where=ENCODED, baseline_where=VANILLA)


def _claims(core: str) -> list[Claim]:
    ours = partial(claims_about, conditions=kinds(core), source=PLACE, ours=True)
    withdrawn = Contrast(WHEN, "withdrawn", None)
    return [
        *ours(
            "collapses_when_withdrawn_{core}",
            "Without the encoding that it was trained with, the {core} loses more than "
            f"{COLLAPSE:g} of token accuracy",
            Differs(ACCURACY, ENCODED, withdrawn, VOCABULARY, PLANNED, -1, COLLAPSE, OURS),
        ),
        *ours(
            "early_helps_{core}",
            "An encoding that is gone after half of the updates leaves the {core} above the "
            "vanilla one",
            Differs(ACCURACY, {}, _against_never("early"), VOCABULARY),
        ),
        *ours(
            "late_helps_{core}",
            "An encoding in the second half alone leaves the {core} above the vanilla one",
            Differs(ACCURACY, {}, _against_never("late"), VOCABULARY),
        ),
        *ours(
            "early_is_not_all_{core}",
            "An encoding that is gone after half of the updates leaves the {core} below the "
            "encoded one",
            Differs(ACCURACY, ENCODED, Contrast(WHEN, "early", None), VOCABULARY, sign=-1),
        ),
    ]


OF_LSTM, OF_GRU = _claims("lstm"), _claims("gru")
BY_SCHEDULE = lay_out(
    "core.kind", ACCURACY, panels="training.schedule", lines=("encoding.kind", WHEN), contrast=None
)

SCAFFOLD = Experiment(
    name="scaffold",
    scales=grids(
        at(HOT),
        [*encodings(), *({**ENCODED, WHEN: when} for when in SCHEDULES)],
        demo=(DEMO_PACED, cores(gru=8, lstm=16)),
        # Two hours on two CPU cores; the arms "always" and "never" are those of `temperature`.
        small=(SMALL_PACED, cores(gru=64, lstm=192)),
        paper=({**PAPER_PACED, **at(HOT, TENTH)}, cores(gru=64, lstm=1_024)),
    ),
    claims=with_primary(
        [*OF_LSTM[:2], *OF_GRU[:2], *OF_LSTM[2:], *OF_GRU[2:]], "collapses_*", "early_helps_*"
    ),
    figure=BY_SCHEDULE,
    labels={
        "constant": "At a constant rate",
        "none, None": "Never",
        "sinusoidal, None": "Always",
        **{f"sinusoidal, {when}": name for when, name in SCHEDULES.items()},
        **SCHEDULES,
    },
    rules={"demo": "2026-12", "small": "2026-12", "paper": "2026-12"},
)
