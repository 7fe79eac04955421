"""Tables, figures, verdicts and pages of finished trials, without torch."""

from typing import TYPE_CHECKING

from pernn.lazy import exports


if TYPE_CHECKING:
    from .claims import (
        Verdict as Verdict,
        judge_all as judge_all,
        smallest_effect as smallest_effect,
    )
    from .comparing import Comparison as Comparison, compare as compare
    from .drawings import Drawing as Drawing, draw_curves as draw_curves
    from .texts import clean as clean, csv_cell as csv_cell
    from .tables import (
        export_curves as export_curves,
        export_records as export_records,
        require_exportable as require_exportable,
    )
    from .figures import Format as Format, draw as draw, render as render
    from .findings import Cell as Cell
    from .texts import Labels as Labels
    from .drawings import FORMATS as FORMATS
    from .comparing import Side as Side, select as select
    from .records import (
        at_own_best as at_own_best,
        matches as matches,
        paired_differences as paired_differences,
        settings_of as settings_of,
    )
    from .claims import (
        Registered as Registered,
        claim_digest as claim_digest,
        find_registered as find_registered,
        judge_experiment as judge_experiment,
        rule_of as rule_of,
    )
    from .report import Report as Report
    from .statistics import MIN_SEEDS as MIN_SEEDS, Outcome as Outcome
    from .comparing import compare_pace as compare_pace
    from .statistics import (
        Interval as Interval,
        bootstrap_interval as bootstrap_interval,
        student_interval as student_interval,
    )
    from .study import (
        NOT_ASKED as NOT_ASKED,
        SCALES as SCALES,
        Counted as Counted,
        count_claims as count_claims,
        outcome_apart as outcome_apart,
        planned_sweeps as planned_sweeps,
        write_study as write_study,
    )
    from .tables import (
        Measured as Measured,
        Row as Row,
        summarise as summarise,
        to_csv as to_csv,
        to_markdown as to_markdown,
    )

__getattr__ = exports(__name__)
