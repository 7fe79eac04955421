"""Reports: finished trials → tables, figures, verdicts and a page; never loads torch."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .claims import Verdict, judge, judge_all
    from .escaping import clean, csv_cell
    from .exports import export_records
    from .figures import draw, render
    from .findings import Cell
    from .frames import load_curves, load_results
    from .labels import Labels
    from .page import Report, write_report
    from .records import paired_differences
    from .replication import Study, fill, replication_parts
    from .rules import Outcome
    from .statistics import Interval, bootstrap_interval, student_interval
    from .tables import Measured, Row, summarise, to_csv, to_markdown
    from .unrolled import unroll

__all__ = [
    "Cell",
    "Interval",
    "Labels",
    "Measured",
    "Outcome",
    "Report",
    "Row",
    "Study",
    "Verdict",
    "bootstrap_interval",
    "clean",
    "csv_cell",
    "draw",
    "export_records",
    "fill",
    "judge",
    "judge_all",
    "load_curves",
    "load_results",
    "paired_differences",
    "render",
    "replication_parts",
    "student_interval",
    "summarise",
    "to_csv",
    "to_markdown",
    "unroll",
    "write_report",
]

__getattr__ = exports(
    __name__,
    {
        "Cell": ".findings",
        "Interval": ".statistics",
        "Labels": ".labels",
        "Measured": ".tables",
        "Outcome": ".rules",
        "Report": ".page",
        "Row": ".tables",
        "Study": ".replication",
        "Verdict": ".claims",
        "bootstrap_interval": ".statistics",
        "clean": ".escaping",
        "csv_cell": ".escaping",
        "draw": ".figures",
        "export_records": ".exports",
        "fill": ".replication",
        "judge": ".claims",
        "judge_all": ".claims",
        "load_curves": ".frames",
        "load_results": ".frames",
        "paired_differences": ".records",
        "render": ".figures",
        "replication_parts": ".replication",
        "student_interval": ".statistics",
        "summarise": ".tables",
        "to_csv": ".tables",
        "to_markdown": ".tables",
        "unroll": ".unrolled",
        "write_report": ".page",
    },
)
