"""Do recurrent networks need to be told the time?

Gates of the minimal GRU and LSTM and of the gated delta rule see the input alone, so they cannot
count. The linear recurrent unit and S4D decay and turn at fixed rates, whatever they are shown. The
rate is constant, and each network's own: `--tune training.learning_rate=LOW:HIGH:N`.

Source: ours; the question is that of Morita (2024), version 3, figure 2, and version 5, section 4.
"""

from collections.abc import Sequence

from pernn.lab.runs import RunSpec

from .comparisons import CORES, OURS, by_core, encoding_helps, labels
from .experiment import Experiment
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, each, encodings, grid
from .learning_rate import COLUMN, PLACE
from .predicates import Claim, Contrast, DiffersMore, Place, Sooner, with_primary
from .temperature import BATCH, DEMO_PACED, HOT, LEVEL, SMALL_PACED

KINDS = ("elman", "gru", "lstm", "min_gru", "min_lstm", "lru", "s4d", "gated_delta")
PLACES = {"elman": PLACE[1], "s4d": Place("v5", "section 4.1")}
"""Where the paper has a core; of the others it has the question."""
BLIND = {"min_gru": "gru", "min_lstm": "lstm", "gated_delta": "lstm"}
"""Core whose gates do not see the state → one whose gates do."""
UNGATED = ("lru", "s4d")
TENTH_SAVED = 0.9
SMALL_TRAINING: Settings = {
    **SMALL_PACED,
    "training.iterations": 1_200,
    "training.log_interval": 20,
}


def specs(
    base: Settings, vocabularies: Sequence[int], seeds: Sequence[int], kinds: Sequence[str]
) -> tuple[RunSpec, ...]:
    """Cross vocabularies, cores and encodings at the hot cell."""
    shared = {**base, COLUMN: HOT[0], BATCH: HOT[1]}
    sizes = each("task.vocab_size", vocabularies)
    return grid(shared, sizes, each("core.kind", kinds), encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    return specs({**DEMO_PACED, "training.iterations": 300}, [8], SEEDS, KINDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for a quarter of an hour on two CPU cores.

    That is when tuned, and of the start of the training.
    """
    return specs(SMALL_TRAINING, [32], SMALL_SEEDS, KINDS)


def gains_more(core: str, other: str) -> DiffersMore:
    """State that a core gains more from the encoding than another."""
    between = Contrast("core.kind", treated=core, baseline=other)
    return DiffersMore("token_accuracy", {}, ENCODING, between, "task.vocab_size")


def _gains_more(core: str, other: str) -> Claim:
    return Claim(
        name=f"gains_more_{core}",
        statement=f"The {CORES[core]}, whose gates do not see the state, gains more from the "
        f"encoding than the {CORES[other]} (our check).",
        source=PLACE,
        predicate=gains_more(core, other),
    )


def _no_sooner(core: str) -> Claim:
    return Claim(
        name=f"no_sooner_{core}",
        statement=f"The encoding saves the {CORES[core]} less than a tenth of the updates to "
        f"{LEVEL} (our check).",
        source=PLACES.get(core, PLACE),
        predicate=Sooner(
            LEVEL,
            {"core.kind": core},
            ENCODING,
            "task.vocab_size",
            sign=-1,
            factor=TENTH_SAVED,
            factor_origin=OURS,
        ),
    )


PRIMARY = (
    *(_gains_more(core, other) for core, other in BLIND.items()),
    *(_no_sooner(core) for core in UNGATED),
)
FIGURE = by_core("core.kind", "token_accuracy")

EXPERIMENT = Experiment(
    name="who_needs_a_clock",
    scales={"demo": demo, "small": small},
    claims=with_primary(
        (*PRIMARY, *(encoding_helps(core, PLACES.get(core, PLACE)) for core in KINDS)),
        *(one.name for one in PRIMARY),
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *KINDS),
    rules={"demo": "2026-12", "small": "2026-12"},
)
