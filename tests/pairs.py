"""Combinations of settings: `make test` takes some in which any two values meet, the rest are slow.

What goes wrong in a combination nearly always goes wrong in every one with the same two values.
"""

import random
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(**axes: list[Any]) -> pytest.MarkDecorator:
    """Return the parameters of a test: every combination of these values, most of them `slow`."""
    values = list(axes.values())
    order = list(product(*(range(len(axis)) for axis in values)))
    met: set[tuple[tuple[int, int], ...]] = set()
    few = set()
    for places in random.Random(1).sample(order, len(order)):
        pairs = set(combinations(enumerate(places), 2))
        if not pairs <= met:
            few.add(places)
            met |= pairs
    parameters = []
    for places in order:
        chosen = [axis[place] for axis, place in zip(values, places, strict=True)]
        marks = () if places in few else pytest.mark.slow
        parameters.append(pytest.param(*chosen, marks=marks, id="-".join(map(str, chosen))))
    return pytest.mark.parametrize(tuple(axes), parameters)
