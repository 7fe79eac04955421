"""How often the rules that decide claims are wrong, and how often they see what is there.

python benchmarks/verdicts.py --write docs/statistics.md  # draws trials of a known truth
"""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.random import Generator
from scipy.stats import ttest_ind

from pernn.lab.experiments import Rule
from pernn.lab.reports.statistics import (
    ALPHA,
    Evidence,
    correct,
    exceeds,
    holm,
    in_every,
    lies_within,
    trials_near,
)
from pernn.lab.reports.texts import markdown_table
from pernn.randomness import RandomStream, Split

SPREAD = 0.01
"""Standard deviation of trials; of paired differences too."""

Shape = tuple[int, int]
"""Number of simulated studies, seeds of each."""


class Scenario(NamedTuple):
    """One claim in words, one truth, whether it holds there (`None`: on the edge), and draws."""

    claim: str
    truth: str
    holds: bool | None
    draw: Callable[..., Evidence]
    parameters: tuple[Any, ...] = ()

    def rates(self, count: int, num_draws: int) -> tuple[float, ...]:
        """Return how often the claim is supported and contradicted."""
        generator = seeded(f"{self.claim}/{self.truth}/{count}")
        found = self.draw(generator, (num_draws, count), *self.parameters)
        return tuple(float((p <= ALPHA).mean()) for p in found)


def seeded(name: str) -> Generator:
    """Return the generator of this name."""
    return np.random.default_rng(RandomStream(0, name, Split.ANALYSIS).seed_word())


def differs(
    generator: Generator, shape: Shape, mean: float, margin: float = 0.0, sign: int = 1
) -> Evidence:
    """Draw differences."""
    return exceeds(sign * generator.normal(mean, SPREAD, shape), margin)


def differs_more(generator: Generator, shape: Shape, effect: float) -> Evidence:
    """Draw differences of two paired differences, each of trials with `SPREAD`."""
    arms = generator.normal(0.0, SPREAD, (4, *shape))
    return exceeds(effect + arms[0] - arms[1] - arms[2] + arms[3], 0.0)


def grows(generator: Generator, shape: Shape, slope: float) -> Evidence:
    """Draw least-squares slopes per doubling over eight sizes."""
    x = np.arange(8) - 3.5
    values = slope * x + generator.normal(0.0, SPREAD, (*shape, 8))
    return exceeds(values @ x / (x @ x), 0.0)


def reaches(
    generator: Generator, shape: Shape, means: list[float], threshold: float = 0.95, sign: int = 1
) -> Evidence:
    """Draw cells of these means."""
    cells = (generator.normal(mean, SPREAD, shape) for mean in means)
    return in_every([exceeds(one, threshold, sign, or_equal=True) for one in cells])


def equals(
    generator: Generator, shape: Shape, means: list[float], margin: float = 0.01
) -> Evidence:
    """Draw differences in cells of these means."""
    cells = (generator.normal(mean, SPREAD, shape) for mean in means)
    return in_every([lies_within(one, -margin, margin) for one in cells])


def limit(generator: Generator, shape: Shape, mean: float) -> Evidence:
    """Draw limits in octaves, which a grid of doublings rounds down; near 0 is −1 … 1."""
    return lies_within(np.floor(generator.normal(mean, 0.7, shape)), -1, 1)


def every_trial(
    generator: Generator, shape: Shape, num_odd: int = 0, share: float = 0.0
) -> Evidence:
    """Draw five cells of trials at 0.125 or 1, of 10,240 tokens each; some lie in between."""
    shape = shape[0], 5 * shape[1]
    truth = np.where(generator.random(shape) < 0.5, 0.125, 1.0)
    between = generator.uniform(0.2, 0.9, shape)
    odd = (np.arange(shape[1]) < num_odd) | (generator.random(shape) < share)
    measured = generator.binomial(10_240, np.where(odd, between, truth)) / 10_240
    return trials_near(measured, (0.125, 1.0), 0.01)


def stuck(generator: Generator, shape: Shape, share: float) -> Evidence:
    """Draw differences of trials of which some get stuck: far from normal."""
    values = generator.normal(0.0, SPREAD, (2, *shape))
    values -= 0.5 * (generator.random(values.shape) < share)
    return exceeds(values[0] - values[1], 0.0)


def saturated(generator: Generator, shape: Shape, share: float) -> Evidence:
    """Draw accuracies of exactly 1, but for some trials that get stuck at 0."""
    return exceeds(1.0 - (generator.random(shape) < share), 0.95, or_equal=True)


SCENARIOS = (
    Scenario("Differs", "no difference", None, differs, (0.0,)),
    Scenario("Differs", "one spread", True, differs, (SPREAD,)),
    Scenario("Differs", "two spreads", True, differs, (2 * SPREAD,)),
    Scenario("Differs", "two spreads the other way", False, differs, (-2 * SPREAD,)),
    Scenario("Differs, margin 0.01", "difference 0.01", None, differs, (0.01, 0.01)),
    Scenario("Differs, no gain of 0.01", "no difference", True, differs, (0.0, -0.01, -1)),
    Scenario("DiffersMore", "equal differences", None, differs_more, (0.0,)),
    Scenario("DiffersMore", "three spreads", True, differs_more, (3 * SPREAD,)),
    Scenario("Grows", "no slope", None, grows, (0.0,)),
    Scenario("Grows", "half a spread per doubling", True, grows, (SPREAD / 2,)),
    Scenario("AtLeast 0.95, 1 cell", "0.95", None, reaches, ([0.95],)),
    Scenario("AtLeast 0.95, 14 cells", "all 0.95", None, reaches, ([0.95] * 14,)),
    Scenario("AtLeast 0.95, 14 cells", "all 0.951", True, reaches, ([0.951] * 14,)),
    Scenario("AtLeast 0.95, 14 cells", "all 0.98", True, reaches, ([0.98] * 14,)),
    Scenario("AtLeast 0.95, 14 cells", "all 1, one 0.949", False, reaches, ([1.0] * 13 + [0.949],)),
    Scenario("AtLeast 0.95, 14 cells", "all 1, one 0.90", False, reaches, ([1.0] * 13 + [0.9],)),
    Scenario("AtMost 0.05, 5 cells", "all 0.05", None, reaches, ([0.05] * 5, 0.05, -1)),
    Scenario("AtMost 0.05, 5 cells", "all 0.02", True, reaches, ([0.02] * 5, 0.05, -1)),
    Scenario("Equivalent ± 0.01, 1 cell", "no difference", True, equals, ([0.0],)),
    Scenario("Equivalent ± 0.03, 1 cell", "no difference", True, equals, ([0.0], 0.03)),
    Scenario("Equivalent ± 0.01, 1 cell", "difference 0.01", None, equals, ([0.01],)),
    Scenario("Equivalent ± 0.01, 4 cells", "all on an edge", None, equals, ([0.01, -0.01] * 2,)),
    Scenario("Equivalent ± 0.01, 4 cells", "± 0.05, mean 0", False, equals, ([0.05, -0.05] * 2,)),
    Scenario("LimitNear, in octaves", "on the edge", None, limit, (1.5,)),
    Scenario("LimitNear, in octaves", "in the middle", True, limit, (0.5,)),
    Scenario("LimitNear, in octaves", "two octaves off", False, limit, (3.5,)),
    Scenario("EveryTrial", "every trial that was run", True, every_trial),
    Scenario("EveryTrial", "all but one that was run", False, every_trial, (1,)),
)
"""Where the assumption of Student's t holds, but for the limits, which a grid rounds."""

FRAGILE = (
    Scenario("Differs", "none; a tenth of trials stuck", None, stuck, (0.1,)),
    Scenario("Differs", "none; a third of trials stuck", None, stuck, (1 / 3,)),
    Scenario("AtLeast 0.95, 1 cell", "1, but a tenth of trials at 0", False, saturated, (0.1,)),
    Scenario("AtLeast 0.95, 1 cell", "1, but a third of trials at 0", False, saturated, (1 / 3,)),
    Scenario("EveryTrial", "all but a tenth of possible trials", False, every_trial, (0, 0.1)),
)
"""Where it does not."""


def table(scenarios: tuple[Scenario, ...], num_draws: int) -> str:
    """Return Markdown: a row per scenario, supported and contradicted at five and eight seeds."""
    columns = ["supported, n = 5", "contradicted", "supported, n = 8", "contradicted"]
    words = {True: "true", False: "false", None: "on the edge"}
    rows = []
    for one in scenarios:
        rates = [f"{100 * rate:.1f} %" for n in (5, 8) for rate in one.rates(n, num_draws)]
        rows.append([one.claim, one.truth, words[one.holds], *rates])
    return markdown_table(["claim", "truth", "claim is", *columns], rows)


def family(num_claims: int, count: int, num_draws: int) -> tuple[float, float]:
    """Return how often any of some claims without effect gets a verdict, then if corrected."""
    generator = seeded(f"Differs/no difference/{num_claims * count}")
    found = [differs(generator, (num_draws, count), 0.0) for _ in range(num_claims)]
    p_values = np.concatenate(found).T  # a row per study, two tests per claim
    corrected = np.mean([any(holm(row.tolist())) for row in p_values])
    return float((p_values <= ALPHA).any(axis=1).mean()), float(corrected)


FAMILY = 15
SIZES = (8, 16)
"""Seeds of a study: today's, and those for which the next rule is chosen."""


def rules_of_a_family(num_draws: int) -> str:
    """Return Markdown: how often families are wrong and see what is there, by rule.

    A family has fifteen claims, three of them primary, two of which are true; of the other
    twelve four are. True effects are 1.5 spreads of the differences. A claim without effect that
    gets any verdict is wrong, and one with an effect that gets the opposite.
    """
    effects = np.array([1.5, 1.5, 0.0, *[1.5] * 4, *[0.0] * 8])
    primary = [place < 3 for place in range(FAMILY)]
    rules: dict[str, tuple[Rule, list[bool]]] = {
        "2026-11: one-sided, all together": ("2026-11", [False] * FAMILY),
        "two-sided with sign, all together": ("2026-12", [False] * FAMILY),
        "2026-12: two-sided with sign, primary apart": ("2026-12", primary),
    }
    head = ["rule", "n", "any wrong", "any wrong primary", "primary seen", "others seen"]
    head += ["any wrong, no effect at all", "any wrong, related claims"]
    rows = []
    for n in SIZES:
        found = {name: np.zeros(6) for name in rules}
        generator = seeded(f"verdicts/families/{n}")
        for _ in range(num_draws):
            effective, none, related = generator.normal(0, 1, (3, FAMILY, n))
            effective += effects[:, None]
            # Claims that share trials, as most of a sweep do.
            related = np.sqrt(0.5) * (related + generator.normal(0, 1, n))
            tested = [exceeds(values, 0.0) for values in (effective, none, related)]
            pairs = [list(zip(*(p.tolist() for p in one), strict=True)) for one in tested]
            for name, (rule, groups) in rules.items():
                judged, *null = (np.array(correct(one, groups, rule)) for one in pairs)
                wrong = np.where(effects > 0, judged == "contradicted", judged != "inconclusive")
                seen = (judged == "supported") & (effects > 0)
                found[name] += (
                    *(wrong.any(), wrong[:3].any(), seen[:2].mean(), seen[3:7].mean()),
                    *((one != "inconclusive").any() for one in null),
                )
        for name, sums in found.items():
            rows.append([name, str(n), *(f"{100 * share:.1f} %" for share in sums / num_draws)])
    return markdown_table(head, rows)


def paired_or_not(num_draws: int) -> str:
    """Return Markdown: t on differences against Welch's, by the seeds' correlation."""
    columns = ["no effect: paired", "Welch", "one spread: paired", "Welch", "1.5 spreads: paired"]
    rows, level = [], ALPHA / 10
    for correlation, ratio, n in product((-0.3, 0.0, 0.06, 0.5), (1.0, 3.0), SIZES):
        rates = []
        for effect in (0.0, 1.0, 1.5):
            generator = seeded(f"verdicts/paired/{correlation}/{ratio}/{n}/{effect}")
            shared, own = generator.normal(0, 1, (2, num_draws, n))
            other = correlation * shared + np.sqrt(1 - correlation**2) * own
            # The spread of a difference of independent arms is 1, whatever the ratio.
            scale = 1 / np.sqrt(1 + ratio**2)
            treated, vanilla = effect + scale * shared, ratio * scale * other
            tested = ttest_ind(treated, vanilla, axis=1, equal_var=False, alternative="greater")
            found = exceeds(treated - vanilla, 0.0).supports, tested.pvalue
            rates += [(p <= level).mean() for p in found]
        about = [f"{100 * level:.2f} %", f"{correlation:g}", f"{ratio:g} times", str(n)]
        rows.append([*about, *(f"{100 * rate:.2f} %" for rate in rates)])
    head = ["level", "correlation", "vanilla's spread", "n", *columns, "Welch"]
    return markdown_table(head, rows)


def main(draws: int = 20_000, write: Path | None = None) -> None:
    """Print the tables of so many simulated studies, or write them into a page of ours."""
    alone, corrected = family(10, 5, draws)
    parts = [
        f"{draws:,} simulated studies per row; trials spread by {SPREAD}.",
        table(SCENARIOS, draws),
        "Where trials are not normal:",
        table(FRAGILE, draws),
        f"""Of ten claims without any effect at n = 5, at least one gets a verdict
in {100 * alone:.1f} % of studies if each is judged as the only one,
in {100 * corrected:.1f} % with Holm's correction.""",
        f"Fifteen claims, three of them primary; {draws // 4:,} studies per row.",
        rules_of_a_family(draws // 4),
        "One claim at the first step among ten, paired or not; spreads of the difference.",
        paired_or_not(draws),
    ]
    text = "\n\n".join(parts)
    if write is None:
        print(text)
    else:
        marked = re.compile(r"(<!-- simulated -->).*(<!-- /simulated -->)", re.DOTALL)
        old = write.read_text(encoding="utf-8")
        page = marked.sub(lambda marks: f"{marks[1]}\n\n{text}\n\n{marks[2]}", old)
        write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
