"""Is it rare tokens, at an equal entropy of the tokens?

The larger a vocabulary of equally likely tokens, the rarer each of them. Under Zipf laws of equal
entropy an input says as much whatever the exponent, and most of a steeper law's ids are rarer.

Source: ours; the question is that of Morita (2024), version 3, figures 2 and 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pernn.lab.runs import RunSpec

from .comparisons import CORES, LABELS, labels
from .experiment import Experiment, FigureLayout
from .factor_or_exponent import CELLS
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, encodings, grid
from .learning_rate import COLUMN
from .predicates import Claim, Contrast, Differs, DiffersMore, Place, pace_column, with_primary
from .temperature import BATCH, DEMO_PACED, GAIN, LEVEL, SMALL_PACED, either

EXPONENT, TABLE = "task.exponent", "by_rank"
LAWS: Mapping[int, Mapping[float, int]] = {
    16: {0.0: 16, 0.5: 18, 1.0: 28, 1.5: 355},
    96: {0.0: 96, 0.5: 114, 1.0: 376},
}
"""e to the entropy → exponent → the K that comes nearest to it; beyond them none does."""
ENTROPIES = {"gru": 16, "lstm": 96}
DISTURBANTS = Contrast("disturbants", treated="Mostly rare", baseline="Mostly frequent")
SOURCE = (Place("v3", "section 2.1 and Fig. 2"), Place("v3", "section 2.2 and Fig. 3"))


def _specs(
    base: Settings,
    laws: Mapping[str, Mapping[float, int]],
    seeds: Sequence[int],
    updates: Mapping[str, int],
) -> tuple[RunSpec, ...]:
    conditions = [
        {
            "task.kind": "zipf",
            "core.kind": core,
            EXPONENT: exponent,
            "task.vocab_size": size,
            COLUMN: rate,
            BATCH: batch,
            "training.iterations": updates[core],
        }
        for core, law in laws.items()
        for exponent, size in law.items()
        for rate, batch in CELLS.values()
    ]
    return grid(base, conditions, encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    laws = {"gru": {0.0: 16, 1.5: 355}, "lstm": {0.0: 16, 1.0: 28}}
    return _specs(DEMO_PACED, laws, SEEDS, {"gru": 600, "lstm": 600})


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    laws = {core: LAWS[entropy] for core, entropy in ENTROPIES.items()}
    base = {**SMALL_PACED, "task.num_held_out": 4_096}
    return _specs(base, laws, SMALL_SEEDS, {"gru": 10_000, "lstm": 16_000})


def _claims(core: str, cell: str) -> tuple[Claim, ...]:
    """Claim of one core at one cell that rare tokens are what the encoding helps with."""
    steepest = max(LAWS[ENTROPIES[core]])
    here: Settings = {"core.kind": core, **either(CELLS[cell][0])}
    between = Contrast(EXPONENT, treated=steepest, baseline=0.0)
    law = f"under exponent {steepest:g}"
    others, cost = "the other tokens are mostly rare", "mostly rare other tokens cost"
    said = (
        (
            "saves_more",
            f"the encoding saves the {{}} a larger factor of updates to {LEVEL} {law} than 0",
            DiffersMore(pace_column(LEVEL), here, GAIN, between, BATCH),
            None,
        ),
        (
            "gains_more",
            f"the encoding raises the {{}}'s final accuracy more {law} than 0",
            DiffersMore("token_accuracy", here, ENCODING, between, BATCH),
            None,
        ),
        (
            "disturbants_matter",
            f"{law} the vanilla {{}}'s accuracy is lower where {others}",
            Differs(
                "token_accuracy",
                {**here, EXPONENT: steepest, "encoding.kind": ENCODING.baseline},
                DISTURBANTS,
                "target",
                sign=-1,
            ),
            TABLE,
        ),
        (
            "encoding_gives_resilience",
            f"{law} {cost} the encoded {{}} less accuracy than the vanilla one",
            DiffersMore(
                "token_accuracy", {**here, EXPONENT: steepest}, DISTURBANTS, ENCODING, "target"
            ),
            TABLE,
        ),
    )
    return tuple(
        Claim(
            name=f"{name}_when_{cell}_{core}",
            statement=f"At the {cell} cell {words.format(CORES[core])} (our check).",
            source=SOURCE,
            predicate=predicate,
            table=table,
        )
        for name, words, predicate, table in said
    )


FIGURE = FigureLayout(
    x=EXPONENT,
    panels=("core.kind", COLUMN),
    lines="encoding.kind",
    metrics=tuple(pace_column(level) for level in (0.5, 0.8, LEVEL)),
    contrast=ENCODING,
    form="factors",
)

EXPERIMENT = Experiment(
    name="zipf",
    scales={"demo": demo, "small": small},
    claims=with_primary(
        [claim for core in ENTROPIES for cell in CELLS for claim in _claims(core, cell)],
        *(f"saves_more_when_{cell}_{core}" for core in ENTROPIES for cell in CELLS),
    ),
    figure=FIGURE,
    more_figures={
        "rank": FigureLayout(
            x="target",
            panels=COLUMN,
            lines=("encoding.kind", "disturbants"),
            metrics=("token_accuracy",),
            rows=("core.kind", EXPONENT),
            table=TABLE,
        ),
        "accuracy": replace(FIGURE, form="points", metrics=("token_accuracy",)),
    },
    labels={
        **labels(FIGURE, "gru", "lstm", "none", "sinusoidal"),
        "token_accuracy": LABELS["token_accuracy"],
        "target": "Rarity of the target, in quarters",
        "disturbants": "Company",
        "rank": "Accuracy by how rare a token and its company are",
        "accuracy": "Final accuracy at the same cells",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
