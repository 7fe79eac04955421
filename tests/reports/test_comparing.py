"""Two sides compared pair by pair: what is paired, what is left over, and what the numbers say."""

import json
import random
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from cli.test_reading import pernn
from pernn.errors import ConfigError
from pernn.lab.reports import Side, compare, select
from pernn.lab.reports.statistics import effect_size, sign_flip_test
from pernn.lab.store import Sweep, save_sweep
from reports.trials import trials
from store.finished import finish, spec

WAVES = ("[0.8, 0.4]", "[0.1]")
VALUES = (0.31, 0.12, -0.05, 0.22, 0.4)


def encoded(records, metric="token_accuracy", **more):
    sides = [select(f"encoding.kind={kind}", records) for kind in ("sinusoidal", "none")]
    return compare(*sides, metric, **more)


CORES = ("GRU", "LSTM")


def test_the_test_tries_all_signs_and_effects_are_corrected_for_few_pairs():
    signs = np.array(list(product((1, -1), repeat=len(VALUES))))
    means = np.abs(signs @ VALUES)
    expected = np.mean(means >= np.abs(np.sum(VALUES)) - 1e-12)
    assert sign_flip_test(VALUES) == pytest.approx(expected)
    assert sign_flip_test([1.0, 1.1, 1.2]) == 0.25
    assert sign_flip_test([0.0, 0.0]) == 1.0
    assert sign_flip_test([1 + 0.1 * number for number in range(16)]) == 2**-15  # none is drawn
    many = [0.1 * number for number in range(-3, 21)]
    assert sign_flip_test(many) == sign_flip_test(many[::-1])
    found = effect_size([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.d_z == pytest.approx(3 / 2.5**0.5)
    # Hedges' factor at four degrees of freedom, by his table: 0.7979.
    assert found.g_z / found.d_z == pytest.approx(0.7979, abs=5e-5)
    assert effect_size([1.0, 2.0]) is None
    assert effect_size([0.5, 0.5, 0.5]) is None


def test_pairs_agree_in_seed_and_settings_and_differences_are_the_first_less_the_second():
    records = trials(vocab_sizes=(4, 8))
    found = encoded(records[::-1])
    sizes = [f"{core}, Vocabulary size K: {size}" for core in CORES for size in (4, 8)]
    assert [one.name for one in found.cells] == sizes
    one = found.cells[2]
    of_cell = [r for r in records if (r["core.kind"], r["task.vocab_size"]) == ("lstm", 4)]
    arms = [
        [r["token_accuracy"] for r in of_cell if r["encoding.kind"] == kind]
        for kind in ("sinusoidal", "none")
    ]
    expected = ttest_rel(*arms)
    bounds = expected.confidence_interval()
    assert one.differences == dict(zip((111, 222, 333, 444, 555), np.subtract(*arms), strict=True))
    assert one.means == pytest.approx([np.mean(arm) for arm in arms])
    assert (one.interval.low, one.interval.high) == pytest.approx((bounds.low, bounds.high))
    # Over all cells the seed is the unit.
    assert found.overall.name == "mean over 4 cells"
    means = {n: np.mean([cell.differences[333] for cell in found.cells[n:]]) for n in (0, 2)}
    assert found.overall.differences[333] == pytest.approx(means[0])
    # Shown is a mean of each core alone: they are tried at different sizes.
    assert [one.name for one in found.by_core] == [f"{c}, mean over 2 cells" for c in CORES]
    assert found.by_core[1].differences[333] == pytest.approx(means[2])
    assert [row[0] for row in found.rows[4:]] == [one.name for one in found.by_core]
    one_size = encoded(trials(vocab_sizes=(4,)))
    assert [row[0] for row in one_size.rows] == [*CORES]
    assert encoded(trials(("gru",), (4, 8))).rows[-1][0] == "mean over 2 cells"
    assert found.pairs.differing == ("encoding.kind",)
    assert not any("no verdict" in note for note in found.notes)


def test_what_has_no_partner_is_counted():
    records = trials(("gru",), (4, 8))
    lacking = [r for r in records if (r["seed"], r["encoding.kind"]) != (111, "none")]
    one = next(r for r in lacking[::-1] if (r["seed"], r["task.vocab_size"]) == (222, 8))
    found = encoded([r for r in lacking if r is not one])
    assert found.pairs.num_unpaired == (2, 1)
    assert list(found.overall.differences) == [333, 444, 555]
    assert [len(cell.differences) for cell in found.cells] == [4, 3]
    notes = " ".join(found.notes)
    assert "without a partner: 2 of A, 1 of B" in notes
    assert "lacking one: 1 seed." in notes
    said = "n = 3 is no verdict: 5 seeds are needed, and the smallest p that 3 can give is 0.25"
    assert said in notes
    lost = [{**r, "diverged": 7} if r["run"] == records[-1]["run"] else r for r in records]
    assert "Diverged, and counted as the worst: 1 trial." in encoded(lost).notes


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (trials(("gru",), (4,), (111,)), "2 pairs .* encoding.kind alone, got 1 pair in 1 cell"),
        (trials(("gru",), (4, 8), (111,)), "a cell with at least 2 pairs .* 2 pairs in 2 cells"),
        ([*trials(("gru",), (4,)), *trials(("gru",), (4,))], "two trials at seed = 111"),
    ],
)
def test_too_few_pairs_and_trials_that_compete_are_refused(records, said):
    with pytest.raises(ConfigError, match=said):
        encoded(records)


def test_sides_that_differ_in_more_are_refused_and_named():
    records = trials(vocab_sizes=(4, 8))
    apart = [r for r in records if (r["core.kind"] == "gru") == (r["task.vocab_size"] == 4)]
    sides = [select(f"core.kind={core}", apart) for core in ("gru", "lstm")]
    with pytest.raises(ConfigError, match=r"A and B differ in task\.vocab_size too: name it"):
        compare(*sides, "loss")
    texts = ("core.kind=gru,task.vocab_size=4", "core.kind=lstm,task.vocab_size=8")
    found = compare(*(select(text, apart) for text in texts), "loss")
    assert found.pairs.differing == ("core.kind", "task.vocab_size")
    with pytest.raises(ConfigError, match="no trial has a column 'perplexity'"):
        compare(*(select(text, apart) for text in texts), "perplexity")


@pytest.mark.parametrize(
    "extra",
    [
        {"encoding.base": 100.0},
        {"encoding.frequencies": "[0.8, 0.4]"},
        {"training.micro_batch": 64},
        {"pretraining.task.kind": "reverse_ordering", "pretraining.task.vocab_size": 2},
        {"analysis.source_step": 3},
    ],
    ids=lambda extra: next(iter(extra)),
)
@pytest.mark.parametrize("with_it", ["gru", "lstm"])
def test_a_setting_that_only_one_side_gives_is_not_mixed_in(extra, with_it):
    records = [one for one in trials() if one["encoding.kind"] == "sinusoidal"]
    mixed = [one | (extra if one["core.kind"] == with_it else {}) for one in records]
    sides = [select(f"core.kind={core}", mixed) for core in ("gru", "lstm")]
    with pytest.raises(ConfigError, match=f"A and B differ in {', '.join(extra)} too: name it"):
        compare(*sides, "token_accuracy")
    # Whole sweeps have no condition in which it could be named.
    sweeps = [Side(one.name, one.records) for one in sides]
    assert compare(*sweeps, "token_accuracy").pairs.differing == tuple(
        sorted(["core.kind", *extra])
    )


def test_what_a_part_lacks_may_differ_where_kinds_are_compared():
    learned = {"encoding.kind": "learned", "encoding.normalize": True}
    cores = {"core.kind": "s4d", "core.state_size": 64}
    task = {"task.kind": "language_modelling", "task.corpus.kind": "wikitext"}
    task["task.corpus.path"] = "x"
    plain = [one for one in trials(("gru",)) if one["encoding.kind"] == "sinusoidal"]
    records = [one | {"task.kind": "reverse_ordering"} for one in plain]
    for extra in (learned, cores, task):
        both = [*records, *(one | extra | {"run": f"{one['run']}b"} for one in records)]
        kind = next(iter(extra))
        sides = [select(f"{kind}={one}", both) for one in (extra[kind], records[0][kind])]
        assert compare(*sides, "token_accuracy").pairs.differing == tuple(sorted(extra))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core.kynd=gru", "no finished trial has a setting core.kynd, did you mean 'core.kind'"),
        ("core.kind=gruu", "expected core.kind as in gru, lstm, got gruu"),
        ("token_accuracy=1", "has a setting token_accuracy"),
    ],
)
def test_conditions_that_select_nothing_are_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        select(text, trials())


def test_settings_that_are_lists_are_selected_and_one_cell_has_its_row():
    records = [one | {"encoding.frequencies": waves} for one in trials() for waves in WAVES]
    side = select("encoding.frequencies=[0.8,0.4],core.kind=gru", records)
    found = {(one["encoding.frequencies"], one["core.kind"]) for one in side.records}
    assert found == {(WAVES[0], "gru")}
    records = [r for r in trials() if r["core.kind"] == "gru" or r["encoding.kind"] == "none"]
    found = encoded([r for r in records if r["task.vocab_size"] == 4])
    assert [row[:2] for row in found.rows] == [("all", "5")]


def test_sweeps_are_compared_by_what_no_trial_of_both_shares():
    records = [r for r in trials(("gru",), (4, 8)) if r["encoding.kind"] == "none"]
    sizes = {"core.hidden_size": 256, "embedding_size": 256, "loss": 0.0}
    wide = [{**r, "run": f"w{r['run']}", **sizes} for r in records]
    narrow = [{**r, "embedding_size": 128} for r in records]
    place = Path("results")
    found = compare(Side("wide", wide, place=place), Side("narrow", narrow, place=place), "loss")
    assert found.pairs.differing == ("core.hidden_size", "embedding_size")
    assert [one.name for one in found.cells] == ["Vocabulary size K: 4", "Vocabulary size K: 8"]
    # A trial is not compared with itself, unless it ran in another folder.
    both = Side("both", [*wide, *narrow], place=place)
    with pytest.raises(ConfigError, match="on both sides: 10"):
        compare(both, Side("narrow", narrow, place=place), "loss")
    elsewhere = Side("other", narrow, place=Path("x"))
    again = compare(Side("one", narrow, place=place), elsewhere, "loss")
    assert {*again.overall.differences.values()} == {0.0}
    # What the other folder lacks takes part in nothing, even if it resembles a trial there.
    alike = [{**r, "run": f"a{r['run']}", "task.rule": "sorting"} for r in narrow]
    more = Side("more", [*alike, *narrow], place=place)
    again = compare(more, elsewhere, "loss")
    assert {*again.overall.differences.values()} == {0.0}
    assert again.pairs.num_unpaired == (len(alike), 0)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("compare") / "results"
    specs = [spec(seed, core) for seed in range(5) for core in ("gru", "lstm")]
    runs = [finish(root, one, random.Random(one.seed)).fingerprint for one in specs]
    save_sweep(root, Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs[:8]))
    return root


def test_the_verb_prints_a_table_and_json(results, tmp_path):
    def compared(*words):
        done = pernn(results, "compare", *words, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return found, (found["num_pairs"], found["metric"])

    words = ("core.kind=gru", "core.kind=lstm")
    done = pernn(results, "compare", *words, "--metric", "loss")
    assert done.returncode == 0, done.stderr
    assert "Loss: A = core.kind=gru, B = core.kind=lstm" in done.stdout
    assert "all" in done.stdout
    found, about = compared(*words, "--metric", "loss")
    assert about == (5, "loss")
    assert found["overall"]["differences"] == dict.fromkeys(map(str, range(5)), 0.0)
    assert compared(*words, "--sweep", "vocabulary_size")[1] == (4, "token_accuracy")
    other = shutil.copytree(results, tmp_path / "other")
    found, about = compared(results, other, "-m", "loss")
    assert (*about, found["differing"]) == (10, "loss", [])
    published = tmp_path / "evidence"
    done = pernn(results, "publish", "vocabulary_size-demo", "--to", published)
    assert done.returncode == 0, done.stderr
    found, about = compared(published, other)
    assert (*about, found["num_unpaired"]) == (8, "token_accuracy", [0, 2])
