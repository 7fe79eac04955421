"""Print how differences of gradient similarity change with K and with L, from the published trials.

    python docs/evidence/trend.py

After a quarter of the training and after all of it, targets averaged: Rare − Frequent disturbants
in the vanilla and in the encoded network, and encoded − vanilla among Rare and among Frequent
disturbants, in each cell, from each to the next, and per doubling; Student's t interval over
seeds. At other lengths also the gain in accuracy, the mean of all conditions.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

import pernn.lab
from pernn.lab.reports import student_interval

EVIDENCE = Path(__file__).parents[2] / "evidence"
SERIES = (
    ("K", "gru", ((8, 16), (8, 32), (8, 64))),
    ("K", "lstm", ((8, 64), (8, 128), (8, 256))),
    ("K", "s4d", ((8, 256),)),
    ("L", "lstm", ((8, 256), (16, 16), (32, 4))),
    ("L", "lstm", ((8, 4), (16, 4), (32, 4))),
    ("L", "gru", ((8, 4), (16, 4), (32, 4))),
)
"""What grows; core; cells of L and K."""
UPDATES = 20_000
VALUES = [
    ("none", "Frequent"),
    ("none", "Rare"),
    ("sinusoidal", "Frequent"),
    ("sinusoidal", "Rare"),
]
DIFFERENCES = {
    "vanilla, Rare − Frequent": (-1, 1, 0, 0),
    "encoded, Rare − Frequent": (0, 0, -1, 1),
    "among Rare, encoded − vanilla": (0, -1, 0, 1),
    "among Frequent, encoded − vanilla": (-1, 0, 1, 0),
    "encoded − vanilla, among Rare less among Frequent": (1, -1, -1, 1),
}
"""Factors of the four values."""
CELL = ["task.length", "task.vocab_size"]
KEYS = ["core.kind", *CELL, "seed", "encoding.kind"]


def main() -> None:
    """Print the tables of each peak rate; the calm one was run at one cell."""
    rows = pernn.lab.load_results(EVIDENCE, table="gradient_stability")
    for rate, found in rows.groupby("training.learning_rate", sort=False):
        sys.stdout.write(f"Peak rate {rate}\n\n")
        show_all(found)


def show_all(rows: pd.DataFrame) -> None:
    """Print a table for each series and difference."""
    rows = rows[rows["training.iterations"] == UPDATES]  # longer_gradients trains on
    series = [one for one in SERIES if one[1] in {*rows["core.kind"]}]
    # The accuracy of an analysis is that of the training that it is of.
    trials = rows.drop_duplicates("run").set_index(KEYS)["token_accuracy"].unstack("encoding.kind")
    gains = trials["sinusoidal"] - trials["none"]
    for percent in (25, 100):
        means = rows[rows["percent"] == percent].drop_duplicates(["run", "condition"])
        wide = means.groupby([*KEYS, "disturbants"])["similarity"].mean()
        similarity = wide.unstack(["encoding.kind", "disturbants"])[VALUES]
        for axis, core, cells in series:
            for name, factors in DIFFERENCES.items():
                title = f"{core}, {name}, after {UPDATES * percent // 100:,} updates"
                show(title, axis, cells, (similarity @ factors)[core])
    for axis, core, cells in series:
        if axis == "L":
            show(f"{core}, token accuracy, encoded − vanilla", axis, cells, gains[core])


def show(
    title: str, axis: str, cells: Sequence[tuple[int, int]], values: "pd.Series[float]"
) -> None:
    """Print a line per cell, per step to the next, and for the trend, of what is published."""
    table = values.unstack(CELL)
    cells = [cell for cell in cells if cell in table]
    names = {cell: f"L = {cell[0]}, K = {cell[1]}" for cell in cells}
    lines = [f"{names[cell]}: {told(table[cell].dropna())}" for cell in cells]
    for one, other in pairwise(cells):
        step = (table[other] - table[one]).dropna()
        lines.append(f"{names[one]} to {names[other]}: {told(step)}")
    if len(cells) > 1:
        steps = np.log2([size if axis == "K" else length for length, size in cells])
        slopes = np.polyfit(steps, table[cells].dropna().T, 1)[0]
        lines.append(f"per doubling of {axis}: {told(slopes)}")
    if cells:
        sys.stdout.write(title + "\n" + "".join(f"  {line}\n" for line in lines))


def told(values: "Sequence[float] | pd.Series[float]") -> str:
    """Return mean, interval and number of values."""
    found = student_interval(list(values))
    return f"{found.estimate:+.3f} [{found.low:.3f}, {found.high:.3f}], n = {len(values)}"


if __name__ == "__main__":
    main()
