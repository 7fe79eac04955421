"""How verdicts look on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from pernn.reports import Interval, Verdict

STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow", "not run": "dim"}


def print_verdicts(verdicts: Sequence[Verdict], console: Console, *, brief: bool) -> None:
    """Print a table of claims and what became of them.

    Args:
        verdicts: What to print.
        console: Where.
        brief: Whether claims that were not run are only counted.
    """
    shown = [verdict for verdict in verdicts if not brief or verdict.verdict != "not run"]
    table = Table("Verdict", "Claim", "Estimate [95 % bootstrap]", "Student's t", "n", "Detail")
    for one in shown:
        style = STYLES[one.verdict]
        table.add_row(
            f"[{style}]{one.verdict}[/{style}]",
            one.claim.statement,
            _show(one.interval),
            _show(one.student),
            str(one.num_seeds or ""),
            "; ".join(filter(None, [one.quantity, one.detail, one.remark])),
        )
    if shown:
        console.print(table)
    if len(shown) < len(verdicts):
        console.print(f"{len(verdicts) - len(shown)} claims need trials that are not here.")


def _show(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{interval.estimate:.3g} [{interval.low:.3g}, {interval.high:.3g}]"
