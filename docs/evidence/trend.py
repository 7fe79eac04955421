"""Print how differences of gradient similarity change with K, from the published trials.

    python docs/evidence/trend.py

After 5,000 updates and after training, targets averaged: Rare − Frequent disturbants in the vanilla
and in the encoded network, and encoded − vanilla among Rare and among Frequent disturbants, at each
K, from each K to the next, and per doubling of K; Student's t interval over seeds.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd

import pernn
from pernn.reports import student_interval

EVIDENCE = Path(__file__).parents[2] / "evidence"
DIFFERENCES = {
    "vanilla, Rare − Frequent": (("none", "Rare"), ("none", "Frequent")),
    "encoded, Rare − Frequent": (("sinusoidal", "Rare"), ("sinusoidal", "Frequent")),
    "among Rare, encoded − vanilla": (("sinusoidal", "Rare"), ("none", "Rare")),
    "among Frequent, encoded − vanilla": (("sinusoidal", "Frequent"), ("none", "Frequent")),
}


def main() -> None:
    """Print a table for each core."""
    rows = pernn.load_results(EVIDENCE, table="gradient_stability")
    keys = ["core.kind", "task.vocab_size", "seed", "encoding.kind", "disturbants"]
    for percent, core in product((25, 100), ("gru", "lstm", "s4d")):
        chosen = rows[(rows["percent"] == percent) & (rows["core.kind"] == core)]
        means = chosen.drop_duplicates(["run", "condition"]).groupby(keys)["similarity"].mean()
        wide = means[core].unstack(["encoding.kind", "disturbants"])
        for name, (one, other) in DIFFERENCES.items():
            table = (wide[one] - wide[other]).unstack("task.vocab_size")
            sys.stdout.write(
                f"{core}, {name}, after {200 * percent:,} updates\n" + told_by_size(table)
            )


def told_by_size(table: pd.DataFrame) -> str:
    """Return a line per vocabulary size, per step to the next, and for the trend."""
    lines = [f"K = {size}: {told(table[size].dropna())}" for size in table]
    for size, larger in pairwise(table):
        lines.append(f"K = {size} to {larger}: {told((table[larger] - table[size]).dropna())}")
    if len(table.columns) > 1:
        slopes = np.polyfit(np.log2(table.columns), table.dropna().T, 1)[0]
        lines.append(f"per doubling of K: {told(slopes)}")
    return "".join(f"  {line}\n" for line in lines)


def told(values: "Sequence[float] | pd.Series[float]") -> str:
    """Return mean, interval and number of values."""
    found = student_interval(list(values))
    return f"{found.estimate:+.3f} [{found.low:.3f}, {found.high:.3f}], n = {len(values)}"


if __name__ == "__main__":
    main()
