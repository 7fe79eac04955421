"""Does the encoding help with vectors, of which there are infinitely many?

Source: Morita (2024), version 1, appendix B.3 and figure 9.
"""

from functools import partial

from .comparisons import OURS, claims_about, falls, lay_out, named
from .experiment import Experiment
from .grids import ENCODING, SMALL, brief, crossed, each, encodings, grids, kinds
from .predicates import PLANNED, Differs, Equivalent, Place, with_primary

KINDS = ("elman", "gru", "lstm")
DIMENSIONS = (8, 16, 32, 64, 128, 256, 512)
HIGH = DIMENSIONS[3:]
MARGIN = 0.01
"""A difference of cosines below this counts as no discernible effect."""

about = partial(claims_about, source=Place("v1", "appendix B.3 and Fig. 9"))
CLAIMS = (
    *about(
        "no_effect_{core}",
        "The encoding has no discernible effect on the {core}'s cosine similarity, in any "
        "dimension",
        lambda here: Equivalent(
            "cosine_similarity", here, ENCODING, "task.dimension", PLANNED, MARGIN, OURS
        ),
        kinds("gru", "lstm"),
    ),
    *about(
        "harm_{core}",
        "From 64 dimensions on, the encoding lowers the {core}'s cosine similarity",
        lambda here: Differs(
            "cosine_similarity",
            {**here, "task.dimension": HIGH},
            ENCODING,
            cells="task.dimension",
            sign=-1,
        ),
        kinds("elman"),
    ),
    *about(
        "falls_{core}_{encoding}",
        "The {encoding} {core}'s cosine similarity falls with the dimension",
        lambda here: falls(here, "cosine_similarity", "task.dimension"),
        crossed(kinds("gru", "lstm"), encodings()),
    ),
)

INFINITE_VOCABULARY = Experiment(
    name="infinite_vocabulary",
    scales=grids(
        {"task.kind": "infinite_vocabulary"},
        crossed(kinds(*KINDS), encodings()),
        # Minutes, and an hour or two, on two CPU cores.
        demo=(brief(length=8, size=128, updates=750), each("task.dimension", [8, 64])),
        small=(SMALL, each("task.dimension", [8, 32, 64])),
        paper=({"task.length": 64}, each("task.dimension", DIMENSIONS)),
    ),
    claims=with_primary(CLAIMS, "no_effect_*", "harm_elman"),
    figure=lay_out("task.dimension", "cosine_similarity", x_base=2, table="cosine"),
    labels={
        "task.dimension": "Dimension d",
        **named("core.kind", *KINDS, "encoding.kind", "none", "sinusoidal"),
        "cosine_similarity": "Cosine similarity",
    },
)
