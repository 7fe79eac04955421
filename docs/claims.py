"""Every claim with its place, what must hold, and what would contradict it; a page of the site.

python docs/claims.py
"""

import sys
from dataclasses import dataclass
from typing import Any, assert_never

from pernn.lab.experiments import (
    CATALOGUE,
    PLANNED,
    AtLeast,
    AtMost,
    Cells,
    Choice,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Equivalent,
    EveryTrial,
    Grows,
    LimitNear,
    Place,
    Predicate,
    Sooner,
    Where,
    find_experiment,
    is_pace,
)
from pernn.lab.reports.texts import markdown_table

HEAD = """\
# Every claim

What the study's texts and our own plans say, in our words, with its place: arXiv version of the
study ([2402.00236](https://arxiv.org/abs/2402.00236)), then section, figure or table. "Must hold"
is what is judged of the records, "contradicted if" what would refute it; what shows neither is
inconclusive, and what lacks trials is not run. Differences are paired by seed. A claim that asks
for `core.hidden_size` 512 and `training.iterations` 300,000 speaks of the paper's own scale and is
judged there only; every other one at any scale that has its trials. Primary claims are corrected
apart from the others once a scale is registered under the rule `2026-12`
([decision 0029](decisions/0029-families-for-the-next-registration.md)).
"""
COLUMNS = (
    "claim",
    "it says",
    "place",
    "must hold",
    "contradicted if",
    "margin or threshold",
)


def claim_list() -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    for name, entry in CATALOGUE.items():
        claims = find_experiment(name).claims
        primary = ", ".join(f"`{one.name}`" for one in claims if one.primary)
        about = f"{entry.question} ({entry.source}) Primary: {primary}."
        table = markdown_table(COLUMNS, map(_row, claims))
        parts.append(f"## {name}\n\n{about}\n\n{table}\n")
    rows = [(one.experiment, one.statement, str(one.source), one.reason) for one in UNCLAIMED]
    about = "Statements of the texts about results that no claim judges."
    table = markdown_table(("experiment", "the text says", "place", "why no claim"), rows)
    parts.append(f"## Said, and no claim\n\n{about}\n\n{table}\n")
    return "\n".join(parts)


def _row(claim: Claim) -> tuple[str, ...]:
    holds, refutes, bound = describe(claim.predicate)
    rows = f" (rows of the table `{claim.table}`)" if claim.table else ""
    printed = f" (printed: {claim.paper_value})" if claim.paper_value is not None else ""
    about = _where(claim.predicate.where)
    rows += _choice(claim.choice)
    return (
        f"`{claim.name}`",
        claim.statement + printed,
        claim.cited,
        f"{holds}{f', where {about}' if about else ''}{rows}",
        refutes,
        bound,
    )


def describe(predicate: Predicate) -> tuple[str, str, str]:
    """Return what must hold of the records, what would contradict it, and its bound's origin."""
    what = f"`{predicate.metric}`"
    if predicate.compares and is_pace(predicate.metric):
        what = f"log2 of {what}"
    contrasts = [_contrast(one) for one in predicate.contrasts.values()]
    contrast = f"({contrasts[0]}), {contrasts[1]}" if contrasts[1:] else "".join(contrasts)
    cells = f"`{predicate.column}`{_cells(predicate.required)}"
    match predicate:
        case AtLeast() | AtMost():
            at_least = isinstance(predicate, AtLeast)
            reach, fails = ("at least", "below") if at_least else ("at most", "above")
            return (
                f"mean {what} is {reach} {predicate.threshold:g} at every {cells}",
                f"some cell's mean is shown to lie {fails} {predicate.threshold:g}",
                f"{predicate.threshold:g}; {predicate.threshold_origin}",
            )
        case Differs() | DiffersMore():
            bound = predicate.sign * predicate.margin + 0.0  # no −0
            more, less = ("above", "below") if predicate.sign > 0 else ("below", "above")
            return (
                f"{what}, {contrast}, mean over {cells}, is {more} {bound:g}",
                f"it is shown to be {less} {bound:g}",
                _margin(predicate),
            )
        case Sooner():
            factor = predicate.factor**predicate.sign
            more, less = ("above", "below") if predicate.sign > 0 else ("below", "above")
            ratio = f"baseline / treated of {contrast}"
            return (
                f"{what}, {ratio}, geometric mean over {cells}, is {more} {factor:g}",
                f"it is shown to be {less} {factor:g}",
                f"{predicate.factor:g}; {predicate.factor_origin}",
            )
        case Equivalent():
            return (
                f"{what}, {contrast}, is within ± {predicate.margin:g} at every {cells}",
                f"some cell's difference is shown to lie outside ± {predicate.margin:g}",
                _margin(predicate),
            )
        case Grows():
            compared = f", {contrast}," if contrast else ""
            verb, other = ("grows", "fall") if predicate.sign > 0 else ("falls", "grow")
            return (
                f"{what}{compared} {verb} per doubling of {cells}",
                f"it is shown to {other}",
                "0",
            )
        case LimitNear():
            up_to = f"the largest `{predicate.along}` up to which {what} is at least"
            near = f"lies within a factor of two of {predicate.near:g}"
            return (
                f"{up_to} {predicate.threshold:g} {near}",
                "the limit is shown to lie further off",
                f"{predicate.threshold:g}; {predicate.threshold_origin}",
            )
        case EveryTrial():
            values = " or ".join(f"{value:g}" for value in predicate.values)
            return (
                f"{what} of every trial is {values}, ± {predicate.tolerance:g}",
                f"one trial is further than {2 * predicate.tolerance:g} from both",
                f"{predicate.tolerance:g}; {predicate.tolerance_origin}",
            )
        case _:
            assert_never(predicate)


def _margin(predicate: Differs | DiffersMore | Equivalent) -> str:
    margin = abs(predicate.margin)
    return f"{margin:g}; {predicate.margin_origin}" if margin else "0"


def _contrast(contrast: Contrast) -> str:
    treated = _side(contrast.column, contrast.treated, contrast.treated_where)
    return f"{treated} − {_side(contrast.column, contrast.baseline, contrast.baseline_where)}"


def _side(column: str, value: Any, also: Where) -> str:
    extra = f" [{_where(also)}]" if also else ""
    return f"{_value(value)}{extra}" if value is not None else f"no `{column}`{extra}"


def _where(where: Where) -> str:
    return ", ".join(f"`{column}` = {_value(value)}" for column, value in where.items())


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return _many(value)
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)


def _many(values: tuple[Any, ...]) -> str:
    if len(values) < 16:
        return ", ".join(map(_value, values))
    first, second, *_, last = map(_value, values)
    return f"{first}, {second} … {last}"


def _choice(choice: Choice | None) -> str:
    if choice is None:
        return ""
    seeds = f"seeds {_many(choice.seeds)} left out"
    if choice.value is not None:
        return f", at `{choice.column}` = {choice.value:g} ({seeds})"
    best = f"of best mean `{choice.metric}` in the seeds {_many(choice.seeds)}"
    return f", each condition at its own `{choice.column}` {best}, which are left out"


def _cells(required: Cells) -> str:
    return "" if required == PLANNED else f" ({_many(tuple(required))})"


@dataclass(frozen=True)
class Unclaimed:
    """A statement of the texts that became no claim.

    Attributes:
        experiment: Whose records come nearest to it.
        statement: What the text says, in our words.
        source: Where.
        reason: Why it is not judged.
    """

    experiment: str
    statement: str
    source: Place
    reason: str


UNCLAIMED = (
    Unclaimed(
        "vocabulary_extension",
        "The encoded network has learnt the general rule and updates only its dictionary.",
        Place("v1", "section 5.1"),
        "an interpretation; what it predicts is judged as `gain_larger_under_extension`",
    ),
    Unclaimed(
        "dual_frequency",
        "The encoded networks' nearly perfect accuracy holds in most cases.",
        Place("v3", "section 2.2"),
        "the text names one exception only, so `encoded_nearly_perfect_*` ask for all others and "
        '`encoded_early_all_rare_gru` for the exception; "most" itself has no number',
    ),
    Unclaimed(
        "gradient_stability",
        "Consistent gradients over different disturbants make learning succeed.",
        Place("v3", "section 2.3"),
        "the premise of the analysis; a figure shows similarity against accuracy, and no statement "
        "says how closely they go together",
    ),
    Unclaimed(
        "gradient_stability",
        "The S4D model's gradients do not explain its loss of accuracy among Rare disturbants.",
        Place("v5", "sections 4.3 and 5.3"),
        "a conclusion from `difference_gone_s4d` and `disturbants_matter_s4d`, which are judged",
    ),
    Unclaimed(
        "delayed_addition",
        "The task is too hard for GRUs, even with L = 16.",
        Place("v3", "appendix A.1"),
        "no trial of a GRU and no number is reported",
    ),
    Unclaimed(
        "sorting",
        "Wrong answers in sorting are wrong inventories, as the outputs ascend all the same.",
        Place("v1", "appendix C.2"),
        "an interpretation of `ascends_*`",
    ),
    Unclaimed(
        "sorting",
        "The Elman network's outputs ascend without losing their variety.",
        Place("v1", "appendix C.2"),
        "the text does not say how variety was measured",
    ),
    Unclaimed(
        "variable_length",
        "The encoding's use is not limited to tasks whose timing is known.",
        Place("v3", "appendix B"),
        "a conclusion from `encoding_helps_lstm`, which is judged",
    ),
    Unclaimed(
        "alternative_encodings",
        "The learned and the random encoding help with variable length.",
        Place("v3", "Fig. 11"),
        "shown in the figure at most; the text speaks of their helping with fixed length only",
    ),
    Unclaimed(
        "alternative_encodings",
        "The sinusoidal encoding is more robust to variations in length than the others.",
        Place("v3", "appendix C"),
        "the same as `advantage_over_*_larger_with_variable_length`",
    ),
    Unclaimed(
        "autoregressive",
        "In sorting, the feedback of the truth narrows the range of what can follow.",
        Place("v1", "appendix C.2"),
        "is said in principle; in sorting the LSTM that is fed the truth is not compared with the "
        "vanilla one",
    ),
    Unclaimed(
        "infinite_vocabulary",
        "The distributions of the cosine similarity over tokens, quartile by quartile.",
        Place("v1", "Fig. 9"),
        "a figure without numbers; the report draws the same, over all seeds' tokens",
    ),
    Unclaimed(
        "copying_memory",
        "Learning is unstable, with the encoding or without: the error bars are wide.",
        Place("v1", "appendix C.1"),
        "how wide is not said; what makes them wide is judged as `all_or_nothing_*`",
    ),
    Unclaimed(
        "copying_memory",
        "The encoding's benefit is confined to larger vocabularies; memory does not last longer.",
        Place("v1", "section 5.1 and appendix C.1"),
        "a conclusion from `no_help_lstm` here and from the claims of `input_length`",
    ),
    Unclaimed(
        "language_modelling",
        "How much the encoding helps depends on the task.",
        Place("v5", "section 5.3"),
        "no measure across tasks is given; `smaller_gain_*` of sorting compare two of them",
    ),
    Unclaimed(
        "language_modelling",
        "Minimum and maximum test perplexity of five trials.",
        Place("v5", "Table 1"),
        "extremes of five trials have no useful interval; the means are judged as `worse_at_last`",
    ),
)
"""In the order of the experiments."""


if __name__ == "__main__":
    sys.stdout.write(claim_list())
