"""Do gradients differ at equal accuracy, and do they lead?

After equally many updates the encoded network is ahead, and so may be its gradients for that reason
alone. Here they are compared in the checkpoints nearest to three levels of training accuracy, and
within each training with the next fall of the loss.

Source: ours; the question is that of Morita (2024), version 3, figure 5.
"""

from collections.abc import Mapping, Sequence

from pernn.lab.runs import RunSpec

from .comparisons import named
from .dual_frequency import DISTURBANTS
from .experiment import Experiment, FigureLayout
from .factor_or_exponent import CELLS
from .grids import ENCODING, SEEDS, SMALL_SEEDS, Settings, encodings, grid, widths
from .learning_rate import COLUMN
from .predicates import PLANNED, AtLeast, Claim, Differs, Place, Predicate, with_primary
from .temperature import BATCH, DEMO_PACED, SMALL_PACED, either

TABLE, SIZE = "at_levels", "task.vocab_size"
SOURCE = Place("v3", "section 2.3 and Fig. 5")


def _specs(
    base: Settings, lengths: Mapping[str, tuple[int, int]], seeds: Sequence[int]
) -> tuple[RunSpec, ...]:
    """Cross cells (updates in all, and between checkpoints) and encodings."""
    cells = [
        {
            COLUMN: CELLS[cell][0],
            BATCH: CELLS[cell][1],
            "training.iterations": iterations,
            "training.checkpoint_interval": interval,
            "training.keep_interval": interval,
        }
        for cell, (iterations, interval) in lengths.items()
    ]
    shared = {"task.kind": "dual_frequency", "core.kind": "lstm"}
    return grid({**base, **shared}, cells, encodings(), seeds=seeds)


def demo() -> tuple[RunSpec, ...]:
    """Minutes on two CPU cores, no test of the claims."""
    analysis = {"kind": "descent", "num_per_condition": 4, "num_batches": 8}
    sizes = {"task.length": 6, SIZE: 8, "task.num_per_cell": 4}
    lengths = {"hot": (600, 100), "cold": (600, 100)}
    return _specs({**DEMO_PACED, **sizes, "analysis": analysis}, lengths, SEEDS)


def small() -> tuple[RunSpec, ...]:
    """Return trials for an hour on two CPU cores."""
    sizes = {"task.length": 16, SIZE: 64, **widths(128)}
    lengths = {"hot": (4_800, 200), "cold": (8_000, 400)}
    return _specs({**SMALL_PACED, **sizes, "analysis": {"kind": "descent"}}, lengths, SMALL_SEEDS)


def _claims(cell: str) -> tuple[Claim, ...]:
    here: Settings = {"core.kind": "lstm", **either(CELLS[cell][0])}
    rare = {**here, "disturbants": "Rare"}
    said: list[tuple[str, str, Predicate, str | None]] = [
        (
            "similarity",
            "at equal accuracy the encoding raises the LSTM's similarity among Rare disturbants",
            Differs("similarity", rare, ENCODING, "level"),
            TABLE,
        ),
        (
            "noise",
            "at equal accuracy the encoded LSTM's gradients are less noisy than the vanilla one's",
            Differs("noise_scale", rare, ENCODING, "level", sign=-1),
            TABLE,
        ),
        (
            "rare",
            "at equal accuracy Rare disturbants lower the vanilla LSTM's similarity",
            Differs(
                "similarity",
                {**here, "encoding.kind": ENCODING.baseline},
                DISTURBANTS,
                "level",
                sign=-1,
            ),
            TABLE,
        ),
    ]
    said += [
        (
            f"lead_{name}",
            f"the {name} LSTM's similarity precedes the next fall of its loss, beyond the loss",
            AtLeast(
                "lead",
                {**here, "encoding.kind": kind},
                SIZE,
                PLANNED,
                0.0,
                "ours: no partial correlation",
            ),
            None,
        )
        for kind, name in ((ENCODING.baseline, "vanilla"), (ENCODING.treated, "encoded"))
    ]
    return tuple(
        Claim(
            name=f"{name}_when_{cell}",
            statement=f"At the {cell} cell {words} (our check).",
            source=SOURCE,
            predicate=predicate,
            table=table,
        )
        for name, words, predicate, table in said
    )


EXPERIMENT = Experiment(
    name="descent",
    scales={"demo": demo, "small": small},
    claims=with_primary(
        [claim for cell in CELLS for claim in _claims(cell)],
        *(f"{name}_when_{cell}" for cell in CELLS for name in ("similarity", "lead_vanilla")),
    ),
    figure=FigureLayout(
        x="level",
        panels=(COLUMN, "disturbants"),
        lines="encoding.kind",
        metrics=("similarity", "noise_scale", "loss"),
        table=TABLE,
    ),
    labels={
        **named(COLUMN, "disturbants", "encoding.kind", "none", "sinusoidal", "similarity"),
        "level": "Training accuracy",
        "loss": "Loss of fresh sequences",
        "noise_scale": "log2 of the noise scale, sequences",
        "lead": "Partial correlation with the next fall of the loss",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
