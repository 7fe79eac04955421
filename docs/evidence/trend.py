"""Print how differences of gradient similarity change with K, from the published trials.

    python docs/evidence/trend.py

After training, targets averaged: Rare − Frequent disturbants in the vanilla network, and encoded −
vanilla among Rare and among Frequent disturbants, at each K and per doubling of K; Student's t
interval over seeds.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import pernn
from pernn.reports import student_interval

EVIDENCE = Path(__file__).parents[2] / "evidence"
DIFFERENCES = {
    "vanilla, Rare − Frequent": (("none", "Rare"), ("none", "Frequent")),
    "among Rare, encoded − vanilla": (("sinusoidal", "Rare"), ("none", "Rare")),
    "among Frequent, encoded − vanilla": (("sinusoidal", "Frequent"), ("none", "Frequent")),
}


def main() -> None:
    """Print a table for each core."""
    rows = pernn.load_results(EVIDENCE, table="gradient_stability")
    last = rows[rows["percent"] == 100].drop_duplicates(["run", "condition"])
    keys = ["core.kind", "task.vocab_size", "seed", "encoding.kind", "disturbants"]
    means = last.groupby(keys)["similarity"].mean()
    for core in ("gru", "lstm"):
        wide = means[core].unstack(["encoding.kind", "disturbants"])
        for name, (one, other) in DIFFERENCES.items():
            table = (wide[one] - wide[other]).unstack("task.vocab_size")
            lines = [f"{core}, {name}"]
            lines += [f"  K = {size}: {told(table[size].dropna())}" for size in table]
            complete = table.dropna()
            slopes = np.polyfit(np.log2(table.columns), complete.T, 1)[0]
            lines.append(f"  per doubling of K: {told(slopes)}")
            sys.stdout.write("\n".join(lines) + "\n")


def told(values: "Sequence[float] | pd.Series[float]") -> str:
    """Return mean, interval and number of values."""
    found = student_interval(list(values))
    return f"{found.estimate:+.3f} [{found.low:.3f}, {found.high:.3f}], n = {len(values)}"


if __name__ == "__main__":
    main()
