"""How verdicts look on a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pernn.reports import Verdict

STYLES = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive": "yellow",
    "too few seeds": "dim",
    "not run": "dim",
}


def print_verdicts(verdicts: Sequence[Verdict], console: Console, *, brief: bool) -> None:
    """Print a table of claims and what became of them.

    Args:
        verdicts: What to print.
        console: Where.
        brief: Whether claims that were not run are only counted.
    """
    shown = [verdict for verdict in verdicts if not brief or verdict.verdict != "not run"]
    table = Table("Verdict", "Claim", show_lines=True)
    table.add_column("Estimate, 95 % intervals", no_wrap=True)
    for one in shown:
        details = "; ".join(filter(None, [one.quantity, one.detail, one.remark]))
        table.add_row(
            Text(one.verdict, STYLES[one.verdict]),
            Text.assemble(f"{one.claim.statement}\n", (details, "dim")),
            "\n".join(_estimates(one)),
        )
    if shown:
        console.print(table)
    if len(shown) < len(verdicts):
        console.print(f"{len(verdicts) - len(shown)} claims not testable with these runs.")


def _estimates(verdict: Verdict) -> Iterator[str]:
    if verdict.interval is not None:
        yield f"{verdict.interval.estimate:.3g}, n = {verdict.num_seeds}"
    for interval in (verdict.interval, verdict.bootstrap):
        if interval is not None and interval.bounded:
            name = interval.method.removesuffix(" 0.95")
            yield f"{name} {interval.low:.3g} … {interval.high:.3g}"
