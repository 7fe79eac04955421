"""Claims about made-up trials, one of each kind."""

from pernn.lab.experiments import (
    PLANNED,
    AtLeast,
    Claim,
    Differs,
    Equivalent,
    EveryTrial,
    Grows,
    LimitNear,
    Place,
)  # fmt: skip
from pernn.lab.reports import judge_all
from reports.trials import ENCODING, SEEDS, trial

NOISE = [0.0, 0.02, -0.02, 0.01, -0.01]
"""Of five seeds, mean 0."""


def around(*means):
    """Five trials about each mean; a list of cells if there are several."""
    cells = [[mean + one for one in NOISE] for mean in means]
    return cells[0] if len(cells) == 1 else cells


def claim(predicate, **more):
    return Claim("name", "statement", Place("v3", "Fig. 2"), predicate, **more)


def judge(about, *what):
    """Judge a claim alone."""
    return judge_all([about], *what)[0]


def grid(cells, code="sinusoidal", **more):
    return [
        trial(run=f"{size}{seed}{code}{more}", seed=seed, k=size, encoding__kind=code, m=value)
        | {"core.kind": "gru"}
        | more
        for size, values in cells.items()
        for seed, value in zip(SEEDS, values, strict=False)
    ]


def pairs(differences, **more):
    baseline = {size: [0.5] * len(values) for size, values in differences.items()}
    treated = {size: [0.5 + value for value in values] for size, values in differences.items()}
    return grid(baseline, "none", **more) + grid(treated, **more)


def differs(sign=1, **more):
    return claim(Differs("m", {"core.kind": "gru"}, ENCODING, cells="k", sign=sign, **more))


def grows():
    return claim(Grows("m", {"core.kind": "gru"}, ENCODING, along="k"))


def at_least(*required):
    where = {"encoding.kind": "sinusoidal"}
    return claim(AtLeast("m", where, "k", required, 0.95, threshold_origin="ours"))


def equivalent(*required):
    where, margin = (required or PLANNED), 0.05
    return claim(Equivalent("m", {}, ENCODING, "k", where, margin, margin_origin="ours"))


def limit_near(near, *required):
    return claim(LimitNear("m", {}, "k", required, 0.95, near, threshold_origin="the text's"))


def every_trial():
    return claim(EveryTrial("m", {}, "k", PLANNED, (0.125, 1.0), 0.01, tolerance_origin="ours"))


GOOD, BAD, NEAR = [0.99, 0.98, 1.0, 0.99, 0.98], [0.5, 0.6, 0.4, 0.5, 0.7], around(0.951)
