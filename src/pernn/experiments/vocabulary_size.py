"""How large a vocabulary can a recurrent network handle, with and without a position code?

Source: Morita (2024), versions 2 and 3, figure 2; version 1, figure 2.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .comparisons import CORES, by_core, code_helps, gain_grows, labels
from .experiment import Experiment
from .grids import CODE, DEMO_TRAINING, POWERS, SMALL_TRAINING, codes, each, grid, widths
from .predicates import AtLeast, Claim, Differs, LimitNear, Place

PAPER_SETTING = {
    "task.length": 64,
    "core.hidden_size": 512,
    "training.iterations": 300_000,
}


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores."""
    return grid(
        {"task.length": 32, **widths(128), **DEMO_TRAINING},
        each("task.vocab_size", [4, 8, 16]),
        each("core.kind", ["gru"]),
        codes(),
    )


def small() -> tuple[RunSpec, ...]:
    """A night on two CPU cores."""
    return grid(
        {"task.length": 32, **widths(128), **SMALL_TRAINING},
        each("task.vocab_size", [2, 4, 8, 16, 32, 64, 256]),
        each("core.kind", list(CORES)),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {},
        each("task.vocab_size", POWERS),
        each("core.kind", list(CORES)),
        codes(),
    )


def _distance_falls(core: str) -> Claim:
    return Claim(
        name=f"distance_falls_{core}",
        statement=f"The code lowers the {CORES[core]}'s Damerau–Levenshtein distance.",
        source=Place("v3", "Fig. 2"),
        predicate=Differs(
            "damerau_levenshtein", {"core.kind": core}, CODE, cells="task.vocab_size", sign=-1
        ),
    )


def _masters(core: str, smallest: int, largest: int, source: Place) -> Claim:
    return Claim(
        name=f"masters_{core}_{smallest}_{largest}",
        statement=(
            f"The encoded {CORES[core]} reaches 95 % of tokens for K = {smallest} … {largest:,}."
        ),
        source=source,
        predicate=AtLeast(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": CODE.treated},
            cells="task.vocab_size",
            required=tuple(size for size in POWERS if smallest <= size <= largest),
            threshold=0.95,
            threshold_origin="the text's",
        ),
    )


def _limit(core: str, near: int) -> Claim:
    return Claim(
        name=f"limit_{core}",
        statement=f"The encoded {CORES[core]}'s limit (95 % of tokens) lies near K = {near}.",
        source=Place("v1", "section 4.1"),
        predicate=LimitNear(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": CODE.treated},
            along="task.vocab_size",
            required=POWERS,
            threshold=0.95,
            threshold_origin="the text's",
            near=near,
        ),
    )


FIGURE = by_core("task.vocab_size", "token_accuracy", "damerau_levenshtein", x_base=2)

EXPERIMENT = Experiment(
    name="vocabulary_size",
    question=CATALOGUE["vocabulary_size"].question,
    source=CATALOGUE["vocabulary_size"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(code_helps(core, (Place("v3", "Fig. 2"), Place("v1", "Fig. 2"))) for core in CORES),
        *(gain_grows(core, (Place("v3", "Fig. 2"), Place("v1", "Fig. 2"))) for core in CORES),
        *(_distance_falls(core) for core in CORES),
        _masters("gru", 32, 256, Place("v3", "section 2.1")),
        _masters("lstm", 256, 16_384, Place("v3", "section 2.1")),
        _masters("lstm", 2, 16_384, Place("v1", "section 4.1")),
        _limit("elman", 128),
        _limit("gru", 512),
    ),
    figure=FIGURE,
    labels=labels(FIGURE, *CORES),
)
