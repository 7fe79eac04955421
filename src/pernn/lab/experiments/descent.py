"""Do gradients differ at equal accuracy, and do they lead?

After equally many updates the encoded network is ahead, and so may be its gradients for that reason
alone. Here they are compared in the checkpoints nearest to three levels of training accuracy, and
within each training with the next fall of the loss.

Source: ours; the question is that of Morita (2024), version 3, figure 5.
"""

from functools import partial

from .comparisons import claims_about, lay_out, named
from .dual_frequency import DISTURBANTS
from .experiment import Experiment
from .grids import DEMO_PACED, ENCODING, RATE, SMALL_PACED, VANILLA, Settings, at, grids, widths
from .predicates import PLANNED, AtLeast, Claim, Differs, Place, with_primary
from .temperature import ENDS, either

TABLE, SIZE = "at_levels", "task.vocab_size"


def _lasting(**cells: tuple[int, int]) -> list[Settings]:
    """Make one condition per cell, of its updates in all and between checkpoints."""
    return [
        {
            **at(ENDS[cell]),
            "training.iterations": updates,
            "training.checkpoint_interval": interval,
            "training.keep_interval": interval,
        }
        for cell, (updates, interval) in cells.items()
    ]


def _claims(cell: str) -> list[Claim]:
    here: Settings = {"core.kind": "lstm", **either(ENDS[cell][0])}
    about = partial(
        claims_about,
        conditions=[here],
        source=Place("v3", "section 2.3 and Fig. 5"),
        ours=True,
        cell=cell,
    )
    equal = "At the {cell} cell at equal accuracy"
    return [
        *about(
            "similarity_when_{cell}",
            f"{equal} the encoding raises the {{core}}'s similarity among Rare disturbants",
            lambda here: Differs("similarity", {**here, "disturbants": "Rare"}, ENCODING, "level"),
            table=TABLE,
        ),
        *about(
            "noise_when_{cell}",
            f"{equal} the encoded {{core}}'s gradients are less noisy than the vanilla one's",
            lambda here: Differs(
                "noise_scale", {**here, "disturbants": "Rare"}, ENCODING, "level", sign=-1
            ),
            table=TABLE,
        ),
        *about(
            "rare_when_{cell}",
            f"{equal} Rare disturbants lower the vanilla {{core}}'s similarity",
            lambda here: Differs("similarity", {**here, **VANILLA}, DISTURBANTS, "level", sign=-1),
            table=TABLE,
        ),
        *(
            claim
            for kind, name in (("none", "vanilla"), ("sinusoidal", "encoded"))
            for claim in about(
                f"lead_{name}_when_{{cell}}",
                "At the {cell} cell the {encoding} {core}'s similarity precedes the next fall of "
                "its loss, beyond the loss",
                lambda here: AtLeast(
                    "lead", here, SIZE, PLANNED, 0.0, "ours: no partial correlation"
                ),
                conditions=[{**here, "encoding.kind": kind}],
            )
        ),
    ]


DESCENT = Experiment(
    name="descent",
    scales=grids(
        {"task.kind": "dual_frequency", "core.kind": "lstm"},
        demo=(
            {
                **DEMO_PACED,
                "task.length": 6,
                SIZE: 8,
                "task.num_per_cell": 4,
                "analysis": {"kind": "descent", "num_per_condition": 4, "num_batches": 8},
            },
            _lasting(hot=(600, 100), cold=(600, 100)),
        ),
        # An hour on two CPU cores.
        small=(
            {
                **SMALL_PACED,
                "task.length": 16,
                SIZE: 64,
                **widths(128),
                "analysis": {"kind": "descent"},
            },
            _lasting(hot=(4_800, 200), cold=(8_000, 400)),
        ),
    ),
    claims=with_primary(
        [claim for cell in ENDS for claim in _claims(cell)],
        "similarity_*",
        "lead_vanilla_*",
    ),
    figure=lay_out(
        "level",
        "similarity",
        "noise_scale",
        "loss",
        panels=(RATE, "disturbants"),
        contrast=None,
        table=TABLE,
    ),
    labels={
        **named(RATE, "disturbants", "encoding.kind", "none", "sinusoidal", "similarity"),
        "level": "Training accuracy",
        "loss": "Loss of fresh sequences",
        "noise_scale": "log2 of the noise scale, sequences",
        "lead": "Partial correlation with the next fall of the loss",
    },
    rules={"demo": "2026-12", "small": "2026-12"},
)
