"""Parts of an experiment's page: what a sweep says of its claims, and its means by cell."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from pernn.experiments import find_experiment, names_of, tune
from pernn.store import Published, Sweep

from .claims import Verdict
from .escaping import escape_markdown, markdown_table
from .labels import Labels
from .pace import with_pace
from .records import number, paired_differences
from .statistics import student_interval
from .unrolled import unroll

HEAD = ("claim", "quantity", "found", "n", "verdict")


def findings(sweep: Sweep, verdicts: Sequence[Verdict], page: str) -> str:
    """Return a row per claim that a sweep judges, as Markdown.

    Args:
        sweep: Which.
        verdicts: One per claim of its experiment.
        page: Link to the sweep's report.
    """
    rows = [
        (
            escape_markdown(one.claim.statement),
            escape_markdown(one.quantity),
            escape_markdown(str(one.interval)),
            str(one.num_seeds),
            one.verdict,
        )
        for one in verdicts
        if one.interval is not None
    ]
    report = f"Every cell and remark: [{escape_markdown(sweep.title)}]({page})."
    return f"{markdown_table(HEAD, rows)}\n\n{report}"


def means(sweep: Sweep, trials: Sequence[Published]) -> str:
    """Return a row per cell of an experiment's figure, as Markdown.

    Columns are the means of the figure's lines, by its first metric, and its paired difference with
    a 95 % interval by Student's t if it shows one.

    Args:
        sweep: Which.
        trials: Its published trials.
    """
    # Of what is tuned the values stand along the axis.
    experiment, _ = tune(find_experiment(sweep.experiment), (), sweep.overrides)
    layout, label = experiment.figure, Labels(experiment.labels)
    metric, contrast, lines = layout.metrics[0], layout.contrast, names_of(layout.lines)
    named = [name for axis in (layout.rows, layout.panels, layout.x) for name in names_of(axis)]
    by = [name for name in dict.fromkeys(named) if name not in lines]
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = defaultdict(dict)
    curves = {one.run: one.curves for one in trials}
    paced = with_pace([one.record() for one in trials], curves.__getitem__)
    records = unroll(paced, layout.table)
    for one in records:
        if (value := number(one, metric)) is not None:
            cell, line = (tuple(map(one.get, names)) for names in (by, lines))
            found[cell].setdefault(line, []).append(value)
    columns = label.order(line for some in found.values() for line in some)
    head = [*map(label, by), *map(label, columns)]
    differences: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    if contrast:
        head.append(f"{label(contrast.treated)} − {label(contrast.baseline)}")
        for key, value in paired_differences(records, metric, contrast, by).items():
            differences[key[1:]].append(value)
    rows = []
    for cell in label.order(found):
        values = (found[cell].get(line) for line in columns)
        shown = (student_interval(some).shown if some else "–" for some in values)
        row = [*map(label, cell), *shown]
        if contrast:
            row.append(str(student_interval(pairs)) if (pairs := differences[cell]) else "–")
        rows.append([escape_markdown(text) for text in row])
    return f"{label(metric)}:\n\n{markdown_table([*map(escape_markdown, head)], rows)}"
