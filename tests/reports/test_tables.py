"""Rows over seeds, and texts that cannot break out of their cells."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.errors import ConfigError
from pernn.lab.reports import bootstrap_interval, student_interval, summarise, to_csv, to_markdown
from pernn.lab.reports.texts import clean, escape_markdown
from reports.trials import SEEDS, trial, trials

BY = ("core.kind", "encoding.kind", "task.vocab_size")
METRICS = ("token_accuracy", "loss")
TEXTS = st.text(max_size=30) | st.text("|\\<>&\n\r`[]=+-@' \u2028a", max_size=12)


def test_a_row_holds_the_values_and_both_intervals():
    records = trials(cores=("gru",), vocab_sizes=(4,))
    row = summarise(records[::-1], BY, METRICS)[1]
    values = [one["loss"] for one in records if one["encoding.kind"] == "sinusoidal"]
    found = row.metrics["loss"]
    assert dict(found.values) == dict(zip(SEEDS, values, strict=True))
    assert list(found.values) == list(SEEDS)
    assert found.bootstrap == bootstrap_interval(values)
    assert found.student == student_interval(values)
    (line,) = csv.DictReader(io.StringIO(to_csv([row], METRICS)))
    for interval, prefix in ((found.bootstrap, ""), (found.student, "t_")):
        shown = [float(line[f"loss.{prefix}{end}"]) for end in ("low", "high")]
        assert shown == [interval.low, interval.high]


def test_a_seed_stands_once_in_a_condition_and_signs_are_escaped():
    with pytest.raises(ConfigError, match=r"two trials at core\.kind = gru, .*seed = 111"):
        summarise(trials(), ("core.kind", "task.vocab_size"), METRICS)
    assert escape_markdown("__init__ of_a _b ~~c~~") == r"\_\_init\_\_ of_a \_b \~\~c\~\~"
    assert escape_markdown("a|b\n<b>&`*[x](y)") == "a\\|b &lt;b&gt;&amp;\\`\\*\\[x\\](y)"
    assert clean("a\x1b[31m\u202eb\u2028\ud800c–é") == "a [31m b  c–é"


def test_metrics_that_are_missing_stay_blank():
    records = [trial(seed=1, k=2, m=0.5), trial(seed=2, k=2), trial(seed=1, k=4, m=None)]
    rows = summarise(records, ["k"], ["m"])
    assert dict(rows[0].metrics["m"].values) == {1: 0.5}
    assert rows[0].num_parameters == ()
    assert "m" not in rows[1].metrics
    assert to_csv(rows, ["m"]) == (
        "k,num_seeds,num_parameters,preset,m.mean,m.low,m.high,m.t_low,m.t_high,m.values\n"
        "2,2,,,0.5,,,,,1:0.5\n"
        "4,1,,,,,,,,\n"
    )
    assert to_markdown(rows, ["m"]).splitlines()[2:] == [
        "| 2 | 2 | – | 0.5 (n = 1: no interval) |",
        "| 4 | 1 | – | – |",
    ]


@given(TEXTS)
def test_any_text_stays_in_its_cell_and_is_no_formula(text):
    rows = summarise([trial(seed=1, word=text, m=0.5)], ["word"], ["m"])
    lines = to_markdown(rows, ["m"]).split("\n")
    assert len(lines) == 4
    bare = lines[2].replace("\\\\", "")
    assert bare.count("|") - bare.count("\\|") == 5
    assert "<" not in lines[2]
    assert len(lines[2].splitlines()) == 1
    _, line = csv.reader(io.StringIO(to_csv(rows, ["m"])))
    assert len(line) == 10
    assert not line[0].startswith(("=", "+", "-", "@"))
    assert line[0].removeprefix("'") == clean(text).removeprefix("'")


def test_mixed_networks_and_presets_are_said():
    sizes = ((2000, "as-run"), (1000, "as-written"), (1500, "as-run"))
    records = [
        trial(seed=seed, k=2, m=0.5, num_parameters=size, preset=preset)
        for seed, (size, preset) in enumerate(sizes)
    ]
    rows = summarise(records, ["k"], ["m"])
    assert rows[0].presets == ("as-run", "as-written")
    assert "| 3 | 1000–2000 |" in to_markdown(rows, ["m"])
    assert "\n2,3,1000 1500 2000,as-run as-written,0.5" in to_csv(rows, ["m"])
