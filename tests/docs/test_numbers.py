"""Every interval that the report prints by hand is one of the published trials.

Any published interval will do; of numbers changed by one in the last digit nine in ten are found.
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
METRICS = ("token_accuracy", "damerau_levenshtein", "cosine_similarity")
NUMBER = r"[−+-]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER})(?:\s+nats)?\s+\[({NUMBER}),\s+({NUMBER})\]")
FILLED = re.compile(r"<!-- (\w[\w ]*?)( \S+)? -->.*?<!-- /\1 -->", re.DOTALL)
OTHERS = ["+0.035 0.026 0.045", "+0.011 −0.017 0.039"]
"""Of the GRU's gain, whose two networks are in two files, and of pilots that are not published."""

Interval = tuple[float, float, float]


def test_every_interval_printed_by_hand_is_computed() -> None:
    found = _printed(ROOT / "docs/evidence/report.md")
    assert len(found) > 100
    missing = [" ".join(one) for one in found if not any(prints(one, x) for x in computed())]
    assert missing == OTHERS


@pytest.mark.parametrize("page", [ROOT / "README.md", *ROOT.glob("docs/reproduce/*.md")])
def test_other_pages_print_none_by_hand(page: Path) -> None:
    assert not _printed(page)


def test_a_wrong_digit_is_found() -> None:
    known = computed()
    assert any(prints(("0.0141", "0.0084", "0.0197"), one) for one in known)
    assert not any(prints(("0.0141", "0.0084", "0.0198"), one) for one in known)


def _printed(page: Path) -> list[tuple[str, ...]]:
    text = FILLED.sub("", page.read_text())
    return [match.groups() for match in INTERVAL.finditer(text)]


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
def computed() -> frozenset[Interval]:
    """Return the intervals of all sweeps, of the trends and between processors."""
    found: set[Interval] = set(_processors()) | _trend()
    for path in EVIDENCE.glob("*.parquet"):
        claims = ROOT / "docs/evidence" / path.stem / "claims.json"
        found |= set(_judged(json.loads(claims.read_text())))
        results = pernn.load_results(EVIDENCE, path.stem)
        found |= set(_differences(results))
        found |= set(_differences(results[~results["seed"].isin(VALIDATION_SEEDS)]))
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
