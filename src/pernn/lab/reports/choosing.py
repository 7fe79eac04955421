"""The best value of a setting for each condition, chosen by seeds that are not judged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pernn.lab.config import is_kind
from pernn.lab.experiments import Choice, Claim
from pernn.lab.trials import is_setting

from .records import Record, matches, number, settings_of, sort_key
from .samples import Label, NotRunError

Condition = frozenset[tuple[str, Any]]
"""All settings of a trial but its seed and what is chosen."""

Tried = Mapping[Condition, Mapping[Any, Mapping[int, float]]]
"""Condition → value of the setting → choosing seed → metric."""


def choose(
    claim: Claim, records: Sequence[Record], planned: Sequence[Record], label: Label
) -> tuple[Sequence[Record], Sequence[Record], str]:
    """Return the trials that take part in a claim, those planned, and what was chosen.

    Args:
        claim: Its `choice` says how; without one everything takes part.
        records: Finished trials.
        planned: Settings of all trials of the sweep, flat.
        label: Column or value → how it is displayed.

    Raises:
        NotRunError: If trials that choose are missing.
    """
    choice = claim.choice
    if choice is None:
        return records, planned, ""
    where = settings_of(claim)
    about = [one for one in (*planned, *records) if matches(one, where)]
    tried = _tried(choice, about)
    best = {condition: _best(choice, found, label) for condition, found in tried.items()}

    def takes_part(one: Record) -> bool:
        judged = one.get("seed") not in choice.seeds
        return judged and one.get(choice.column) == best.get(_condition(choice, one), choice)

    said = _describe(choice, best, tried, label) if best and choice.value is None else ""
    return [*filter(takes_part, records)], [*filter(takes_part, planned)], said


def _condition(choice: Choice, one: Record) -> Condition:
    own = ("seed", choice.column)
    return frozenset((k, v) for k, v in one.items() if is_setting(k) and k not in own)


def _tried(choice: Choice, about: Sequence[Record]) -> Tried:
    tried: dict[Condition, dict[Any, dict[int, float]]] = {}
    for one in about:
        if choice.column in one:
            values = tried.setdefault(_condition(choice, one), {})
            scores = values.setdefault(one[choice.column], {})
            score = number(one, choice.metric)
            if one.get("seed") in choice.seeds and score is not None:
                scores[one["seed"]] = score
    return tried


def _best(choice: Choice, tried: Mapping[Any, Mapping[int, float]], label: Label) -> Any:
    """Return the value of the highest mean; of equal ones the smallest."""
    if choice.value is not None:
        return choice.value
    lacking = [value for value, scores in tried.items() if scores.keys() < {*choice.seeds}]
    if lacking:
        values = ", ".join(map(label, sorted(lacking, key=sort_key)))
        seeds = ", ".join(map(str, choice.seeds))
        raise NotRunError(f"the choice needs seeds {seeds} at {label(choice.column)} = {values}")
    return max(sorted(tried, key=sort_key), key=lambda value: math.fsum(tried[value].values()))


def _describe(choice: Choice, best: Mapping[Condition, Any], tried: Tried, label: Label) -> str:
    """Return what was chosen by kinds and other settings, and where nothing beyond was tried."""
    shared = frozenset.intersection(*best)
    groups: dict[str, list[Condition]] = {}
    for one in best:
        kinds = ", ".join(label(value) for path, value in sorted(one - shared) if is_kind(path))
        groups.setdefault(kinds, []).append(one)
    columns: dict[str, None] = {}
    said = []
    for kinds, some in sorted(groups.items()):
        common, words = frozenset.intersection(*some), []
        own = {one: sorted(one - common) for one in some}
        for one in sorted(some, key=lambda one: [(k, sort_key(v)) for k, v in own[one]]):
            columns |= dict.fromkeys(path for path, _ in own[one])
            value, ends = best[one], sorted(tried[one], key=sort_key)
            edge = {ends[0]: "the smallest tried", ends[-1]: "the largest tried"}.get(value, "")
            at = ", ".join(label(setting) for _, setting in own[one])
            note = "; ".join(filter(None, [at, edge]))
            words.append(f"{label(value)} ({note})" if note else label(value))
        said.append(f"{kinds} {', '.join(words)}".strip())
    by = f" by {', '.join(map(label, columns))}" if columns else ""
    return f"{label(choice.column)}{by}: {'; '.join(said)}"
