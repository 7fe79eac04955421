"""Reports: finished trials → tables, figures, verdicts and a page; never loads torch."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .claims import Verdict, judge, judge_all
    from .curves import NUM_POINTS, curve_rows, draw_curves
    from .escaping import clean, csv_cell
    from .exports import export_records
    from .figures import draw, render
    from .findings import Cell
    from .frames import load_curves, load_results
    from .labels import Labels
    from .page import Report, write_report
    from .records import paired_differences
    from .rules import Outcome
    from .statistics import Interval, bootstrap_interval, student_interval
    from .study import Chapter, write_study
    from .tables import Measured, Row, summarise, to_csv, to_markdown
    from .unrolled import unroll

__all__ = [
    "NUM_POINTS",
    "Cell",
    "Chapter",
    "Interval",
    "Labels",
    "Measured",
    "Outcome",
    "Report",
    "Row",
    "Verdict",
    "bootstrap_interval",
    "clean",
    "csv_cell",
    "curve_rows",
    "draw",
    "draw_curves",
    "export_records",
    "judge",
    "judge_all",
    "load_curves",
    "load_results",
    "paired_differences",
    "render",
    "student_interval",
    "summarise",
    "to_csv",
    "to_markdown",
    "unroll",
    "write_report",
    "write_study",
]

__getattr__ = exports(
    __name__,
    {
        "Chapter": ".study",
        "write_study": ".study",
        "draw_curves": ".curves",
        "curve_rows": ".curves",
        "NUM_POINTS": ".curves",
        "Cell": ".findings",
        "Interval": ".statistics",
        "Labels": ".labels",
        "Measured": ".tables",
        "Outcome": ".rules",
        "Report": ".page",
        "Row": ".tables",
        "Verdict": ".claims",
        "bootstrap_interval": ".statistics",
        "clean": ".escaping",
        "csv_cell": ".escaping",
        "draw": ".figures",
        "export_records": ".exports",
        "judge": ".claims",
        "judge_all": ".claims",
        "load_curves": ".frames",
        "load_results": ".frames",
        "paired_differences": ".records",
        "render": ".figures",
        "student_interval": ".statistics",
        "summarise": ".tables",
        "to_csv": ".tables",
        "to_markdown": ".tables",
        "unroll": ".unrolled",
        "write_report": ".page",
    },
)
