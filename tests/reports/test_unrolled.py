"""Rows of tables in the place of trials: laws, claims, tables, exports."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pernn.errors import ConfigError, CorruptError
from pernn.lab.experiments import AtLeast, Contrast, Differs
from pernn.lab.reports import export_records, report
from pernn.lab.trials import unroll
from reports.test_claims import claim, judge
from reports.test_drawn import GRID
from reports.test_page import SVG, write
from reports.trials import by_condition, by_length, trial, trials

VALUES = st.none() | st.integers(-9, 9) | st.floats(0, 1) | st.sampled_from(["a", "b"])
NAMES = st.sampled_from(["position", "token_accuracy", "q50", "target"])


@st.composite
def tables(draw):
    length = draw(st.integers(0, 4))
    column = st.lists(VALUES, min_size=length, max_size=length)
    return draw(st.dictionaries(NAMES, column, max_size=3))


@given(st.lists(tables(), max_size=3))
def test_rows_are_laid_over_their_trial(found):
    records = [
        trial(run=str(n), seed=n, token_accuracy=0.5, loss=1.0, tables={"t": table})
        for n, table in enumerate(found)
    ]
    plain = [{k: v for k, v in record.items() if k != "tables"} for record in records]
    assert unroll(records, "t") == [
        record | dict(zip(table, cells, strict=True))
        for record, table in zip(plain, found, strict=True)
        for cells in zip(*table.values(), strict=True)
    ]


def test_no_table_leaves_the_trials_alone_and_a_trial_without_it_contributes_nothing():
    records = by_length()
    assert all(one is other for one, other in zip(unroll(records, None), records, strict=True))
    assert unroll([*trials(), *records], "by_length") == unroll(records, "by_length")
    assert unroll(trials(), "by_length") == []


@pytest.mark.parametrize("name", ["seed", "run", "kind", "task.length", "preset"])
def test_a_column_named_like_a_setting_is_refused(name):
    with pytest.raises(CorruptError, match=rf"run 7: table 't': column '{name}'"):
        unroll([trial(run=7, seed=1, tables={"t": {name: [1]}})], "t")


def test_claims_are_about_rows():
    records = by_condition()
    rare = Contrast("disturbants", treated="rare", baseline="frequent")
    where = {"target": "rare", "encoding.kind": "none", "core.kind": "gru"}
    harms = Differs("token_accuracy", where, rare, "position", sign=-1)
    found = judge(claim(harms, table="by_position"), records)
    assert (found.verdict, found.num_seeds) == ("supported", 5)
    early = {**where, "disturbants": "rare", "position": tuple(range(1, 5))}
    masters = AtLeast("token_accuracy", early, "position", (1, 2, 3, 4), 0.95, "ours")
    assert judge(claim(masters, table="by_position"), records).verdict == "contradicted"
    assert judge(claim(harms), records).verdict == "not run"
    missing = judge(claim(harms, table="by_length"), records)
    assert missing.verdict == "not run"
    assert missing.detail == "no finished trial has a table 'by_length'"
    assert judge(claim(harms, table="by_position"), []).verdict == "not run"


LAYOUT = replace(GRID, metrics=("token_accuracy",))


def test_the_report_is_of_rows_and_lists_the_first_of_many_trials(tmp_path, monkeypatch):
    records = by_condition()
    for one in records:
        if one["seed"] == 111:
            one["preset"] = "as-written"
    write(tmp_path, records, SVG, figure=LAYOUT)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    settings = ["core.kind", "target", "disturbants", "encoding.kind", "position"]
    assert list(rows[0])[:8] == [*settings, "num_seeds", "num_parameters", "preset"]
    assert len(rows) == 2 * 2 * 2 * 2 * 5
    assert {row["preset"] for row in rows} == {"as-run as-written"}
    assert "loss.mean" not in rows[0]  # which is the whole trial's
    assert "num_sequences.mean" in rows[0]
    table = (tmp_path / "report.md").read_text()
    assert "mixed presets: as-run, as-written" in table
    assert " | 1000–1002 | " not in table
    assert " | 1,000–1,002 | " in table
    page = (tmp_path / "index.html").read_text()
    assert "<summary>All 80 rows</summary>" in page
    assert "<summary>Every trial (20)</summary>" in page
    assert page.count("mixed presets: as-run, as-written") >= 2
    monkeypatch.setattr(report, "MAX_LISTED", 7)
    write(tmp_path, records, SVG, figure=LAYOUT)
    page = (tmp_path / "index.html").read_text()
    said = f"The first 7 of {len(records)} trials; pernn export gives all"
    assert f"<summary>{said}</summary>" in page
    assert page.count("<td><code>") == 7


READ = {
    "csv": lambda path: [*csv.DictReader(io.StringIO(path.read_text()))],
    "json": lambda path: json.loads(path.read_text()),
    "parquet": lambda path: parquet.read_table(path).to_pylist(),
}


@pytest.mark.parametrize("form", READ)
def test_exports_leave_tables_out_or_unroll_them(form, tmp_path):
    path, read = tmp_path / f"records.{form}", READ[form]
    records = by_length()
    assert export_records(records, path) == len(records)
    assert len(read(path)) == len(records)
    assert "tables" not in read(path)[0]
    assert export_records(records, path, "by_length") == 20 * len(records)
    rows = read(path)
    assert [int(row["length"]) for row in rows[:3]] == [5, 6, 7]
    assert {row["encoding.kind"] for row in rows} == {"none", "sinusoidal"}
    with pytest.raises(ConfigError, match=r"did you mean 'by_length'\?.*known: by_length"):
        export_records(records, path, "by_lenght")
    assert export_records([], path, "by_length") == 0
    assert form == "csv" or read(path) == []


def test_no_cell_of_a_csv_is_a_formula_and_numbers_stay_numbers(tmp_path):
    texts = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", ""]
    records = [{"text": text, "number": -0.5, "=name": -3, "none": None} for text in texts]
    export_records(records, tmp_path / "a.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "a.csv").read_bytes().decode(), newline="")))
    assert rows[0] == ["text", "number", "'=name", "none"]
    defused = ["'" + text.replace("\r", "\n") for text in texts[:6]] + texts[6:]
    assert rows[1:] == [[text, "-0.5", "-3", ""] for text in defused]
