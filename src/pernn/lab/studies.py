"""A whole study, local and published: one page or data set."""

import json
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, PernnError
from pernn.lab.experiments import SINGLE
from pernn.lab.reports import chart_library, export_curves, export_records, write_study
from pernn.lab.store import (
    describe_publication,
    gc_paused,
    list_publications,
    list_sweeps,
    load_pyarrow,
    require_writable,
    to_json,
    write_atomically,
)
from pernn.lab.sweeps import (
    Plan,
    list_single_runs,
    plan_again,
    read_plan,
    repeat_command,
    report_of,
    restrict,
)
from pernn.lab.trials import find_published, lines_and_settings

CARD = """\
---
{header}
---

# Trials of position-encoded recurrent networks

Made by [pernn](https://arxiv.org/abs/2402.00236), `pernn export --hub`: a row per finished trial,
its settings by dotted path beside its metrics, and a configuration per sweep.

| sweep | finished trials | of | seeds | made by |
|---|---|---|---|---|
{rows}

`SWEEP` has the trials, `SWEEP.curves` the lines of their training (`kind` train) and tests (test),
any other configuration the rows of a table that each trial has. Trials of one seed are paired: they
saw the same data. `claims.json` has what the texts of the study claim, each judged by these trials.
"""


def make_study(
    root: Path, path: Path, complain: Callable[[str], None], folder: Path | None = None
) -> int:
    """Write one page of all sweeps, local ones first.

    Args:
        root: Results directory; it need not exist.
        path: Where the page goes.
        complain: Told of each damaged run and each sweep of an unknown experiment; left out.
        folder: Published trials, which count as finished; `None` to count none.

    Returns:
        The number of sweeps on the page.

    Raises:
        StoreError: If the page cannot be written; at once, before anything is read.
        MachineError: If its charts cannot be made; likewise.
    """
    require_writable(path)
    chart_library()
    with gc_paused():
        plans = list(_plans(root, folder, complain))
        write_study([report_of(root, plan, complain, ("svg",)) for plan in plans], path)
    return len(plans)


def write_dataset(
    root: Path,
    place: Path,
    complain: Callable[[str], None],
    folder: Path | None = None,
    only: Collection[str] = (),
) -> int:
    """Write sweeps as a data set for the Hugging Face hub.

    It has a card, `README.md`, Parquet files below `data`, and `claims.json`. Those of an earlier
    export are replaced.

    Args:
        root: Results directory; it need not exist.
        place: The folder.
        complain: Told of each damaged run and each sweep of an unknown experiment; left out.
        folder: Published trials, which count as finished; `None` to count none.
        only: Names of sweeps; all if empty.

    Returns:
        The number of trials.

    Raises:
        ConfigError: If nothing is finished.
        MachineError: If pyarrow is missing.
        StoreError: If a file cannot be written; at once, before anything is read.
    """
    load_pyarrow()
    require_writable(place / "README.md")
    configs: list[str] = []
    rows: list[str] = []
    claims: list[dict[str, Any]] = []
    count = 0
    for plan in _plans(root, folder, complain, only):
        sweep, report = plan.sweep, report_of(root, plan, complain)
        if not (records := report.records):
            continue
        tables = {name: records for one in records for name in one["tables"] if name.isidentifier()}
        for name, rows_of in {"": records, **tables}.items():
            config = f"{sweep.name}.{name}" if name else sweep.name
            if export_records(rows_of, place / f"data/{config}.parquet", name or None):
                configs.append(config)
        curves = lines_and_settings(report.trials)
        if len(curves[0]):
            export_curves(*curves, place / f"data/{sweep.name}.curves.parquet")
            configs.append(f"{sweep.name}.curves")
        claims += [{"sweep": sweep.name, **one.dump()} for one in report.verdicts]
        cells = [sweep.name, len(records), len(sweep.runs), len({one["seed"] for one in records})]
        command = repeat_command(sweep).replace("|", "\\|")
        rows.append(f"| {' | '.join(map(str, cells))} | `{command}` |")
        count += len(records)
    if not rows:
        raise ConfigError("no finished trial to export: `pernn status` shows what there is")
    header = {
        "license": "mit",
        "pretty_name": "Trials of position-encoded recurrent networks",
        "tags": ["recurrent-neural-network", "positional-encoding", "tabular"],
        "configs": [
            {"config_name": config, "data_files": f"data/{config}.parquet"} for config in configs
        ],
    }
    # JSON is YAML.
    lines = [f"{key}: {json.dumps(value)}" for key, value in header.items()]
    card = CARD.format(header="\n".join(lines), rows="\n".join(rows))
    write_atomically(place / "README.md", card.encode())
    write_atomically(place / "claims.json", to_json({"claims": claims}))
    return count


def _plans(
    root: Path,
    folder: Path | None,
    complain: Callable[[str], None],
    only: Collection[str] = (),
) -> Iterable[Plan]:
    """Read every sweep once, or only some, with its published trials."""
    names = [*list_sweeps(root), *([SINGLE] if list_single_runs(root) else [])]
    found = {name: partial(read_plan, root, name) for name in names}
    published = find_published(folder, None, complain)
    for file in list_publications(folder) if folder and published else []:
        found.setdefault(file.stem, partial(_plan_published, file))
    for name, read in found.items():
        if only and name not in only:
            continue
        try:
            plan = read()
        except PernnError as error:
            complain(f"sweep {name}: {error}")
            continue
        yield plan.taking(partial(restrict, published), root)


def _plan_published(file: Path) -> Plan:
    return plan_again(describe_publication(file))
