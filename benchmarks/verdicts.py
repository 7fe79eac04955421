"""How often the rules of decision are wrong, and how often they see what is there.

Draws trials of a known truth, lets the very rules that decide claims decide, and counts. Run it to
write the table of docs/statistics.md:

    python benchmarks/verdicts.py --write docs/statistics.md
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import ttest_ind

from pernn.lab.experiments import Rule
from pernn.lab.reports.rules import (
    ALPHA,
    Evidence,
    correct,
    exceeds,
    holm,
    in_every,
    lies_within,
    trials_near,
)
from pernn.randomness import RandomStream, Split

NUM_DRAWS = 20_000
SPREAD = 0.01
"""Standard deviation of trials; of paired differences too."""
BEGIN, END = "<!-- simulated -->", "<!-- /simulated -->"

Draw = Callable[[np.random.Generator, int, int], Evidence]
"""Generator, number of simulated studies, seeds of each → evidence of each study."""


@dataclass(frozen=True)
class Scenario:
    """One claim and one truth.

    Attributes:
        claim: The predicate, in words.
        truth: What the trials are drawn from.
        holds: Whether the claim is true there; `None` if the truth lies on its edge.
        draw: Makes the evidence.
    """

    claim: str
    truth: str
    holds: bool | None
    draw: Draw

    def rates(self, count: int, num_draws: int) -> tuple[float, float]:
        """Return how often the claim is supported and contradicted."""
        generator = np.random.default_rng(_seed(self, count))
        found = self.draw(generator, num_draws, count)
        return tuple(float((p <= ALPHA).mean()) for p in found)  # type: ignore[return-value]

    def wrong(self, supported: float, contradicted: float) -> float:
        """Return the share of verdicts that are wrong; on the edge both are, the larger counts."""
        if self.holds is None:
            return max(supported, contradicted)
        return contradicted if self.holds else supported


def _seed(scenario: Scenario, count: int) -> int:
    name = f"{scenario.claim}/{scenario.truth}/{count}"
    return RandomStream(0, name, Split.ANALYSIS).seed_word()


def _normal(mean: float, spread: float = SPREAD, cells: int = 0) -> Callable[..., np.ndarray]:
    def draw(generator: np.random.Generator, studies: int, count: int) -> np.ndarray:
        shape = (cells, studies, count) if cells else (studies, count)
        return generator.normal(mean, spread, shape)

    return draw


def _sign(mean: float, margin: float = 0.0, sign: int = 1) -> Draw:
    values = _normal(mean)
    return lambda *study: exceeds(sign * values(*study), margin)


def _more(effect: float) -> Draw:
    """Difference of two paired differences, each of trials with `SPREAD`."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        arms = generator.normal(0.0, SPREAD, (4, studies, count))
        return exceeds(effect + arms[0] - arms[1] - arms[2] + arms[3], 0.0)

    return draw


def _slope(slope: float) -> Draw:
    """Least-squares slope per doubling over eight sizes."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        x = np.arange(8) - 3.5
        values = slope * x + generator.normal(0.0, SPREAD, (studies, count, 8))
        return exceeds(values @ x / (x @ x), 0.0)

    return draw


def _level(means: list[float], threshold: float = 0.95, sign: int = 1) -> Draw:
    def draw(*study: int) -> Evidence:
        cells = [_normal(mean)(*study) for mean in means]
        return in_every([exceeds(one, threshold, sign, or_equal=True) for one in cells])

    return draw


def _within(means: list[float], margin: float = 0.01) -> Draw:
    def draw(*study: int) -> Evidence:
        return in_every([lies_within(_normal(m)(*study), -margin, margin) for m in means])

    return draw


def _limit(mean: float) -> Draw:
    """Limits in octaves, which a grid of doublings rounds down; near 0 is −1 … 1."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        return lies_within(np.floor(generator.normal(mean, 0.7, (studies, count))), -1, 1)

    return draw


def _trials(num_odd: int = 0, share: float = 0.0) -> Draw:
    """Five cells of trials at 0.125 or 1, measured on 10,240 tokens; some lie in between."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        shape = (studies, 5 * count)
        truth = np.where(generator.random(shape) < 0.5, 0.125, 1.0)
        between = generator.uniform(0.2, 0.9, shape)
        odd = (np.arange(shape[1]) < num_odd) | (generator.random(shape) < share)
        measured = generator.binomial(10_240, np.where(odd, between, truth)) / 10_240
        return trials_near(measured, (0.125, 1.0), 0.01)

    return draw


def _stuck(share: float) -> Draw:
    """Differences of trials of which some get stuck: far from normal."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        values = generator.normal(0.0, SPREAD, (2, studies, count))
        values -= 0.5 * (generator.random(values.shape) < share)
        return exceeds(values[0] - values[1], 0.0)

    return draw


def _saturated(share: float) -> Draw:
    """Accuracies of exactly 1, but for some trials that get stuck at 0."""

    def draw(generator: np.random.Generator, studies: int, count: int) -> Evidence:
        values = 1.0 - (generator.random((studies, count)) < share)
        return exceeds(values, 0.95, or_equal=True)

    return draw


SCENARIOS = (
    Scenario("Differs", "no difference", None, _sign(0.0)),
    Scenario("Differs", "one spread", True, _sign(SPREAD)),
    Scenario("Differs", "two spreads", True, _sign(2 * SPREAD)),
    Scenario("Differs", "two spreads the other way", False, _sign(-2 * SPREAD)),
    Scenario("Differs, margin 0.01", "difference 0.01", None, _sign(0.01, 0.01)),
    Scenario("Differs, no gain of 0.01", "no difference", True, _sign(0.0, -0.01, -1)),
    Scenario("DiffersMore", "equal differences", None, _more(0.0)),
    Scenario("DiffersMore", "three spreads", True, _more(3 * SPREAD)),
    Scenario("Grows", "no slope", None, _slope(0.0)),
    Scenario("Grows", "half a spread per doubling", True, _slope(SPREAD / 2)),
    Scenario("AtLeast 0.95, 1 cell", "0.95", None, _level([0.95])),
    Scenario("AtLeast 0.95, 14 cells", "all 0.95", None, _level([0.95] * 14)),
    Scenario("AtLeast 0.95, 14 cells", "all 0.951", True, _level([0.951] * 14)),
    Scenario("AtLeast 0.95, 14 cells", "all 0.98", True, _level([0.98] * 14)),
    Scenario("AtLeast 0.95, 14 cells", "all 1, one 0.949", False, _level([1.0] * 13 + [0.949])),
    Scenario("AtLeast 0.95, 14 cells", "all 1, one 0.90", False, _level([1.0] * 13 + [0.9])),
    Scenario("AtMost 0.05, 5 cells", "all 0.05", None, _level([0.05] * 5, 0.05, -1)),
    Scenario("AtMost 0.05, 5 cells", "all 0.02", True, _level([0.02] * 5, 0.05, -1)),
    Scenario("Equivalent ± 0.01, 1 cell", "no difference", True, _within([0.0])),
    Scenario("Equivalent ± 0.03, 1 cell", "no difference", True, _within([0.0], 0.03)),
    Scenario("Equivalent ± 0.01, 1 cell", "difference 0.01", None, _within([0.01])),
    Scenario("Equivalent ± 0.01, 4 cells", "all on an edge", None, _within([0.01, -0.01] * 2)),
    Scenario("Equivalent ± 0.01, 4 cells", "± 0.05, mean 0", False, _within([0.05, -0.05] * 2)),
    Scenario("LimitNear, in octaves", "on the edge", None, _limit(1.5)),
    Scenario("LimitNear, in octaves", "in the middle", True, _limit(0.5)),
    Scenario("LimitNear, in octaves", "two octaves off", False, _limit(3.5)),
    Scenario("EveryTrial", "every trial that was run", True, _trials()),
    Scenario("EveryTrial", "all but one that was run", False, _trials(num_odd=1)),
)
"""Where the assumption of Student's t holds, but for the limits, which a grid rounds."""

FRAGILE = (
    Scenario("Differs", "none; a tenth of trials stuck", None, _stuck(0.1)),
    Scenario("Differs", "none; a third of trials stuck", None, _stuck(1 / 3)),
    Scenario("AtLeast 0.95, 1 cell", "1, but a tenth of trials at 0", False, _saturated(0.1)),
    Scenario("AtLeast 0.95, 1 cell", "1, but a third of trials at 0", False, _saturated(1 / 3)),
    Scenario("EveryTrial", "all but a tenth of possible trials", False, _trials(share=0.1)),
)
"""Where it does not."""


def table(scenarios: tuple[Scenario, ...], num_draws: int) -> list[str]:
    """Return Markdown: a row per scenario, supported and contradicted at five and eight seeds."""
    columns = ["supported, n = 5", "contradicted", "supported, n = 8", "contradicted"]
    header = ["claim", "truth", "claim is", *columns]
    lines = _head(header)
    words = {True: "true", False: "false", None: "on the edge"}
    for one in scenarios:
        rates = [f"{100 * rate:.1f} %" for n in (5, 8) for rate in one.rates(n, num_draws)]
        lines.append(_line([one.claim, one.truth, words[one.holds], *rates]))
    return lines


def family(num_claims: int, count: int, num_draws: int) -> tuple[float, float]:
    """Return how often at least one of some claims without any effect gets a wrong verdict.

    Returns:
        Without and with correction.
    """
    generator = np.random.default_rng(_seed(SCENARIOS[0], num_claims * count))
    found = [SCENARIOS[0].draw(generator, num_draws, count) for _ in range(num_claims)]
    p_values = np.concatenate(found).T  # a row per study, two tests per claim
    corrected = np.mean([any(holm(row.tolist())) for row in p_values])
    return float((p_values <= ALPHA).any(axis=1).mean()), float(corrected)


def write_between(path: Path | None, text: str) -> None:
    """Write a text into a page between its marks; print it if no page is given."""
    if path is None:
        print(text)
        return
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


PAIRED, FAMILY = 16, 15
"""Seeds and claims of a study for which the next rule is chosen, beside today's eight."""
SIZES = (8, PAIRED)


def rules_of_a_family(num_draws: int) -> list[str]:
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
    lines = _head([*head, "any wrong, no effect at all", "any wrong, related claims"])
    for n in SIZES:
        found = {name: np.zeros(6) for name in rules}
        draws = {"": effects, "none": 0 * effects, "related": 0 * effects}
        generator = np.random.default_rng(_word(f"families/{n}"))
        for _ in range(num_draws):
            outcomes = {}
            for draw, means in draws.items():
                noise = generator.normal(0, 1, (FAMILY, n))
                if draw == "related":  # claims that share trials, as most of a sweep do
                    noise = np.sqrt(0.5) * (noise + generator.normal(0, 1, n))
                found_p = exceeds(noise + means[:, None], 0.0)
                outcomes[draw] = list(zip(*(p.tolist() for p in found_p), strict=True))
            for name, (rule, groups) in rules.items():
                judged = np.array(correct(outcomes[""], groups, rule))
                wrong = np.where(effects > 0, judged == "contradicted", judged != "inconclusive")
                seen = (judged == "supported") & (effects > 0)
                found[name] += (
                    wrong.any(),
                    wrong[:3].any(),
                    seen[:2].mean(),
                    seen[3:7].mean(),
                    *(
                        any(one != "inconclusive" for one in correct(outcomes[draw], groups, rule))
                        for draw in ("none", "related")
                    ),
                )
        for name, sums in found.items():
            lines.append(_line([name, str(n), *map(_percent, sums / num_draws)]))
    return lines


def paired_or_not(num_draws: int) -> list[str]:
    """Return Markdown: t on differences against Welch's, by the seeds' correlation."""
    columns = ["no effect: paired", "Welch", "one spread: paired", "Welch", "1.5 spreads: paired"]
    lines = _head(["level", "correlation", "vanilla's spread", "n", *columns, "Welch"])
    level = ALPHA / 10
    for correlation, ratio, n in product((-0.3, 0.0, 0.06, 0.5), (1.0, 3.0), SIZES):
        rates = []
        for effect in (0.0, 1.0, 1.5):
            generator = np.random.default_rng(_word(f"paired/{correlation}/{ratio}/{n}/{effect}"))
            shared, own = generator.normal(0, 1, (2, num_draws, n))
            other = correlation * shared + np.sqrt(1 - correlation**2) * own
            # The spread of a difference of independent arms is 1, whatever the ratio.
            scale = 1 / np.sqrt(1 + ratio**2)
            treated, vanilla = effect + scale * shared, ratio * scale * other
            tested = ttest_ind(treated, vanilla, axis=1, equal_var=False, alternative="greater")
            rates += [
                (exceeds(treated - vanilla, 0.0).supports <= level).mean(),
                (tested.pvalue <= level).mean(),
            ]
        about = [f"{100 * level:.2f} %", f"{correlation:g}", f"{ratio:g} times", str(n)]
        lines.append(_line([*about, *(f"{100 * rate:.2f} %" for rate in rates)]))
    return lines


def _word(name: str) -> int:
    return RandomStream(0, f"verdicts/{name}", Split.ANALYSIS).seed_word()


def _head(columns: list[str]) -> list[str]:
    return [_line(columns), _line(["---"] * len(columns))]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Print the tables, or write them into a page between its marks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=NUM_DRAWS, help="simulated studies per row")
    parser.add_argument("--write", type=Path, help="page with the marks to write between")
    given = parser.parse_args()
    alone, corrected = family(10, 5, given.draws)
    text = "\n".join(
        [
            f"{given.draws:,} simulated studies per row; trials spread by {SPREAD}.",
            "",
            *table(SCENARIOS, given.draws),
            "",
            "Where trials are not normal:",
            "",
            *table(FRAGILE, given.draws),
            "",
            "Of ten claims without any effect at n = 5, at least one gets a verdict",
            f"in {100 * alone:.1f} % of studies if each is judged as the only one,",
            f"in {100 * corrected:.1f} % with Holm's correction.",
            "",
            f"Fifteen claims, three of them primary; {given.draws // 4:,} studies per row.",
            "",
            *rules_of_a_family(given.draws // 4),
            "",
            "One claim at the first step among ten, paired or not; spreads of the difference.",
            "",
            *paired_or_not(given.draws),
        ]
    )
    write_between(given.write, text)


if __name__ == "__main__":
    main()
