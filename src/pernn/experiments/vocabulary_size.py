"""How large a vocabulary can a recurrent network handle, with and without a position code?

Source: Morita (2024), versions 2 and 3, figure 2; version 1, figure 2.
"""

from pernn.runs import RunSpec

from .catalogue import CATALOGUE
from .experiment import (
    AtLeast,
    Claim,
    Differs,
    Experiment,
    FigureLayout,
    Grows,
    LimitNear,
)
from .grids import CODE, DEMO_TRAINING, SMALL_TRAINING, codes, each, grid, widths

CORES = (("elman", "Elman network"), ("gru", "GRU"), ("lstm", "LSTM"), ("s4d", "S4D model"))
POWERS = tuple(2**exponent for exponent in range(1, 15))
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
        each("core.kind", [kind for kind, _ in CORES]),
        codes(),
    )


def paper() -> tuple[RunSpec, ...]:
    """The published grid; meant for GPUs."""
    return grid(
        {},
        each("task.vocab_size", POWERS),
        each("core.kind", [kind for kind, _ in CORES]),
        codes(),
    )


def _helps(core: str, title: str) -> Claim:
    return Claim(
        name=f"code_helps_{core}",
        statement=f"The sinusoidal code raises the {title}'s token accuracy.",
        source="000 Fig. 2, 001 Fig. 2",
        predicate=Differs("token_accuracy", {"core.kind": core}, CODE, cells="task.vocab_size"),
    )


def _grows(core: str, title: str) -> Claim:
    return Claim(
        name=f"gain_grows_{core}",
        statement=f"The {title}'s gain from the code grows with the vocabulary.",
        source="000 Fig. 2, 001 Fig. 2",
        predicate=Grows("token_accuracy", {"core.kind": core}, CODE, along="task.vocab_size"),
    )


def _distance_falls(core: str, title: str) -> Claim:
    return Claim(
        name=f"distance_falls_{core}",
        statement=f"The code lowers the {title}'s Damerau–Levenshtein distance.",
        source="000 Fig. 2",
        predicate=Differs(
            "damerau_levenshtein", {"core.kind": core}, CODE, cells="task.vocab_size", sign=-1
        ),
    )


def _masters(core: str, title: str, smallest: int, largest: int, source: str) -> Claim:
    return Claim(
        name=f"masters_{core}_{smallest}_{largest}",
        statement=f"The encoded {title} reaches 95 % of tokens for K = {smallest} … {largest:,}.",
        source=source,
        predicate=AtLeast(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": CODE.treated},
            cells="task.vocab_size",
            required=tuple(size for size in POWERS if smallest <= size <= largest),
            threshold=0.95,
        ),
    )


def _limit(core: str, title: str, near: int) -> Claim:
    return Claim(
        name=f"limit_{core}",
        statement=f"The encoded {title}'s limit (95 % of tokens) lies near K = {near}.",
        source="001 section 4.1",
        predicate=LimitNear(
            "token_accuracy",
            {**PAPER_SETTING, "core.kind": core, "encoding.kind": CODE.treated},
            along="task.vocab_size",
            required=POWERS,
            threshold=0.95,
            near=near,
        ),
    )


EXPERIMENT = Experiment(
    name="vocabulary_size",
    question=CATALOGUE["vocabulary_size"].question,
    source=CATALOGUE["vocabulary_size"].source,
    scales={"demo": demo, "small": small, "paper": paper},
    claims=(
        *(_helps(*core) for core in CORES),
        *(_grows(*core) for core in CORES),
        *(_distance_falls(*core) for core in CORES),
        _masters("gru", "GRU", 32, 256, "000 section 2.1"),
        _masters("lstm", "LSTM", 256, 16_384, "000 section 2.1"),
        _masters("lstm", "LSTM", 2, 16_384, "001 section 4.1"),
        _limit("elman", "Elman network", 128),
        _limit("gru", "GRU", 512),
    ),
    figure=FigureLayout(
        x="task.vocab_size",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("token_accuracy", "damerau_levenshtein"),
        contrast=CODE,
        x_base=2,
    ),
    labels={
        "task.vocab_size": "Vocabulary size K",
        "core.kind": "Core",
        "encoding.kind": "Code",
        "elman": "Elman",
        "gru": "GRU",
        "lstm": "LSTM",
        "s4d": "S4D",
        "none": "Vanilla",
        "sinusoidal": "Position-encoded",
        "token_accuracy": "Token accuracy",
        "damerau_levenshtein": "Damerau–Levenshtein distance",
    },
)
