"""How often comparisons of updates to a level are wrong where trials never reach it.

Draws paired times whose logarithm is normal, cuts them at the end of the training, lets each method
decide at 2.5 % on either side, and counts. Run it to write the table of a page:

    python benchmarks/pace.py --write docs/decisions/0030-updates-to-a-level.md
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from verdicts import write_between

from pernn.lab.reports.rules import ALPHA, MIN_SEEDS, exceeds
from pernn.randomness import RandomStream, Split

NUM_DRAWS = 4_000
COUNT = 8
SPREAD = 0.3
"""Standard deviation of log2 updates over seeds; of published cells 0.02 to 0.8."""
SHARES = (0.0, 0.2, 0.5, 0.8)

Method = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]
"""Log2 times of baseline and treated, studies × seeds, and the log2 of the last update → p-values
that the treated one is sooner, and estimates of the log2 factor (NaN where there is none)."""


def restricted(baseline: np.ndarray, treated: np.ndarray, cap: float) -> tuple[np.ndarray, ...]:
    """Student's t of log2 min(T, cap): what pernn does."""
    found = np.minimum(baseline, cap) - np.minimum(treated, cap)
    return exceeds(found, 0.0).supports, found.mean(axis=-1)


def dropped(baseline: np.ndarray, treated: np.ndarray, cap: float) -> tuple[np.ndarray, ...]:
    """Student's t of the pairs whose trials both arrived; no verdict below five of them."""
    p_values, estimates = np.ones(len(baseline)), np.full(len(baseline), np.nan)
    whole = (baseline <= cap) & (treated <= cap)
    for count in range(MIN_SEEDS, baseline.shape[1] + 1):
        rows = whole.sum(axis=1) == count
        if rows.any():
            found = (baseline - treated)[rows][whole[rows]].reshape(-1, count)
            p_values[rows], estimates[rows] = exceeds(found, 0.0).supports, found.mean(axis=1)
    return p_values, estimates


def signs(baseline: np.ndarray, treated: np.ndarray, cap: float) -> tuple[np.ndarray, ...]:
    """Exact sign test of the pairs whose order is known."""
    found = np.sign(np.minimum(baseline, cap) - np.minimum(treated, cap))
    known, above = (found != 0).sum(axis=1), (found > 0).sum(axis=1)
    return stats.binom.sf(above - 1, np.maximum(known, 1), 0.5), np.full(len(found), np.nan)


def ranks(baseline: np.ndarray, treated: np.ndarray, cap: float) -> tuple[np.ndarray, ...]:
    """Wilcoxon's signed ranks of log2 min(T, cap), all 2^n signs tried; ties share ranks."""
    found = np.minimum(baseline, cap) - np.minimum(treated, cap)
    sizes = stats.rankdata(np.abs(found), axis=1) * (found != 0)
    every = (np.arange(2 ** found.shape[1])[:, None] >> np.arange(found.shape[1])) & 1
    seen = (sizes * (found > 0)).sum(axis=1)
    possible = sizes @ every.T
    return (possible >= seen[:, None] - 1e-9).mean(axis=1), np.full(len(found), np.nan)


METHODS: dict[str, Method] = {
    "restricted, t": restricted,
    "pairs dropped, t": dropped,
    "sign test": signs,
    "signed ranks": ranks,
}


@dataclass(frozen=True)
class Truth:
    """What times are drawn from.

    Attributes:
        words: What a reader is told.
        factor: Median updates of the baseline over those of the treated.
        spreads: Of log2 updates, of the baseline and of the treated.
    """

    words: str
    factor: float
    spreads: tuple[float, float] = (SPREAD, SPREAD)


TRUTHS = (
    Truth("factor 1", 1.0),
    Truth("factor 1, the baseline spreads twice as far", 1.0, (2 * SPREAD, SPREAD)),
    Truth("factor 1.5", 1.5),
    Truth("factor 2", 2.0),
)


def simulate(truth: Truth, share: float, num_draws: int) -> dict[str, tuple[float, ...]]:
    """Return by method how often sooner and later are found, and the mean estimate's factor.

    Args:
        truth: What is drawn.
        share: Of the baseline's trials, those that never arrive.
        num_draws: Simulated studies.
    """
    name = f"pace/{truth.words}/{share}"
    generator = np.random.default_rng(RandomStream(0, name, Split.ANALYSIS).seed_word())
    shape = (num_draws, COUNT)
    baseline = generator.normal(math.log2(truth.factor), truth.spreads[0], shape)
    treated = generator.normal(0.0, truth.spreads[1], shape)
    cap = math.inf
    if share:
        cap = math.log2(truth.factor) + truth.spreads[0] * float(stats.norm.ppf(1 - share))
    found = {}
    for method, decide in METHODS.items():
        sooner, estimates = decide(baseline, treated, cap)
        later, _ = decide(treated, baseline, cap)
        known = estimates[~np.isnan(estimates)]
        rates = (float((p <= ALPHA).mean()) for p in (sooner, later))
        found[method] = (*rates, float(2 ** known.mean()) if known.size else math.nan)
    return found


def table(num_draws: int) -> list[str]:
    """Return Markdown: a row per truth and share, per method what it finds and estimates."""
    header = ["truth", "baseline never arrives", *METHODS]
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join(['---'] * len(header))} |"]
    for truth in TRUTHS:
        for share in SHARES:
            cells = []
            for sooner, later, factor in simulate(truth, share, num_draws).values():
                text = f"{100 * sooner:.1f} %, {100 * later:.1f} %"
                cells.append(text if math.isnan(factor) else f"{text}; ×{factor:.2f}")
            lines.append(f"| {' | '.join([truth.words, f'{100 * share:.0f} %', *cells])} |")
    return lines


def main() -> None:
    """Print the table, or write it into a page between its marks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=NUM_DRAWS, help="simulated studies per row")
    parser.add_argument("--write", type=Path, help="page with the marks to write between")
    given = parser.parse_args()
    head = f"{given.draws:,} studies of {COUNT} pairs per row; log2 updates spread by {SPREAD}. "
    head += "Found sooner, found later (each at 2.5 %); estimated factor."
    write_between(given.write, "\n".join([head, "", *table(given.draws)]))


if __name__ == "__main__":
    main()
