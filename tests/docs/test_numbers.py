"""Every interval that the documentation prints by hand is one of the published trials.

Of numbers changed by one in the last digit, nine in ten are found in README and the report, where
any published interval will do, and more on the experiments' pages.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import pernn
from pernn.experiments.grids import VALIDATION_SEEDS
from pernn.reports import student_interval

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "evidence"
REPRODUCE = sorted((ROOT / "docs/reproduce").glob("[a-z]*.md"))
PAGES = [ROOT / "README.md", ROOT / "docs/evidence/report.md", *REPRODUCE]
METRICS = ("token_accuracy", "damerau_levenshtein", "cosine_similarity")
NUMBER = r"[−+-]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})(?:\s+nats)?\s+\[({NUMBER}),\s+({NUMBER})\]")
FILLED = re.compile(r"<!-- (\w[\w ]*) -->.*?<!-- /\1 -->", re.DOTALL)
PILOTS = ["+0.011 −0.017 0.039"]
SLOPE = ["+0.0175 0.0097 0.0253"]
SAME = ["+0.035 0.026 0.045"]
OTHERS = {
    "report": [*SAME, *PILOTS],
    "tuned_vocabulary_size": [*SLOPE, *SAME],
    "language_modelling": ["-0.061 -0.087 -0.035", "-0.019 -0.031 -0.006", "-0.040 -0.141 0.061"],
    "learning_rate": ["0.068 0.052 0.084"],
    "vocabulary_size": ["0.892 0.869 0.911"],
}
"""Intervals of pilots and demos that are not published, a bootstrap interval of a mean, that
of the GRU's gain, whose two networks are in two files, and of a slope that is no claim."""

Interval = tuple[float, float, float]


def test_every_interval_printed_by_hand_is_computed() -> None:
    found = {page.stem: _printed(page) for page in PAGES}
    assert sum(map(len, found.values())) > 200
    missing = {
        name: [" ".join(one) for one in some if not any(prints(one, x) for x in _known(name))]
        for name, some in found.items()
    }
    assert {name: some for name, some in missing.items() if some} == OTHERS


def test_a_wrong_digit_is_found() -> None:
    known = computed("sorting")
    assert any(prints(("0.030", "0.015", "0.045"), one) for one in known)
    assert not any(prints(("0.030", "0.015", "0.046"), one) for one in known)


def _printed(page: Path) -> list[tuple[str, ...]]:
    text = FILLED.sub("", page.read_text())
    return [match.groups() for match in INTERVAL.finditer(text)]


def _known(page: str) -> frozenset[Interval]:
    """Return the intervals that a page may print: an experiment's page, those of its trials."""
    return computed(page if ROOT / f"docs/reproduce/{page}.md" in REPRODUCE else "")


def prints(printed: Sequence[str], value: Interval) -> bool:
    """Whether an interval, or that of the difference the other way round, is rounded to this."""
    low, high = value[1:]
    return any(
        all(
            abs(float(text.replace("−", "-")) - number)
            <= 0.5001 * 10 ** -len(text.partition(".")[2])
            for text, number in zip(printed, one, strict=True)
        )
        for one in (value, (-value[0], -high, -low))
    )


@cache
def computed(experiment: str) -> frozenset[Interval]:
    """Return all intervals of the sweeps of an experiment, or of all of them."""
    found: set[Interval] = set()
    for path in EVIDENCE.glob("*.parquet"):
        if path.stem.startswith(f"{experiment}-" if experiment else ""):
            claims = ROOT / "docs/evidence" / path.stem / "claims.json"
            found |= set(_judged(json.loads(claims.read_text())))
            results = pernn.load_results(EVIDENCE, path.stem)
            found |= set(_differences(results))
            found |= set(_differences(results[~results["seed"].isin(VALIDATION_SEEDS)]))
    if experiment in ("", "variable_length"):
        found |= set(_differences(_mean_over_lengths()))
    if experiment in ("", "gradient_stability"):
        found |= _trend()
    if not experiment:
        found |= set(_processors())
    return frozenset(found)


def _judged(value: Any) -> Iterator[Interval]:
    if isinstance(value, dict) and {"estimate", "low", "high"} <= value.keys():
        yield value["estimate"], value["low"], value["high"]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inside:
        yield from _judged(one)


def _differences(found: Any) -> Iterator[Interval]:
    """Yield differences between cells, paired by seed, and between gains of the encoding."""
    columns = [
        name
        for name in found
        if re.match(r"(task|core|encoding|training|pretraining)\.", name)
        and found[name].map(str).nunique() > 1
    ]
    for metric in set(METRICS) & set(found):
        values = _cells(found, columns).groupby(["seed", "cell"])[metric].mean().unstack("cell")
        yield from _pairs(values)
        gains = _gains(found, metric, [name for name in columns if "encoding." not in name])
        yield from _pairs(gains)


def _gains(found: Any, metric: str, columns: Sequence[str]) -> Any:
    if not columns or not {"none", "sinusoidal"} <= set(found["encoding.kind"]):
        return {}
    keys = ["seed", "cell", "encoding.kind"]
    wide = _cells(found, columns).groupby(keys)[metric].mean().unstack("encoding.kind")
    return (wide["sinusoidal"] - wide["none"]).unstack("cell")


def _cells(found: Any, columns: Sequence[str]) -> Any:
    cell = zip(*(found[name].map(str) for name in columns), strict=True)
    return found.assign(cell=list(cell))


def _pairs(values: Any) -> Iterator[Interval]:
    """Yield the difference of every two columns that have seeds in common."""
    for one, other in combinations(values, 2):
        differences = (values[one] - values[other]).dropna()
        if len(differences) > 1:
            yield _paired(differences)


def _paired(differences: Any) -> Interval:
    interval = student_interval(list(differences))
    return interval.estimate, interval.low, interval.high


def _mean_over_lengths() -> Any:
    rows = pernn.load_results(EVIDENCE, "variable_length-small", table="by_length")
    keys = ["seed", "core.kind", "encoding.kind"]
    return rows.groupby(keys, as_index=False)["token_accuracy"].mean()


def _trend() -> set[Interval]:
    command = [sys.executable, str(ROOT / "docs/evidence/trend.py")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {tuple(map(float, match.groups())) for match in INTERVAL.finditer(text)}  # type: ignore[misc]


def _processors() -> Iterator[Interval]:
    keys = ["core.kind", "encoding.kind", "seed"]
    repeated = pernn.load_results(EVIDENCE / "amd_epyc")
    first = pernn.load_results(EVIDENCE, "vocabulary_size-small")
    amd, intel = (
        found[found["run"].isin(repeated["run"])].groupby(keys)["token_accuracy"].mean()
        for found in (repeated, first)
    )
    for core in ("gru", "lstm"):
        yield _paired(amd[core]["sinusoidal"] - amd[core]["none"])
        for encoding in ("none", "sinusoidal"):
            yield _paired(intel[core][encoding] - amd[core][encoding])
