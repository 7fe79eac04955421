"""Grids from the command line: seeds, lists and additions, each beside what the experiment has."""

import re
import shlex
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pernn.errors import ConfigError
from pernn.lab.cli.options import grid_changes
from pernn.lab.config import flatten, parse_assignment
from pernn.lab.cores import CORES, GRUConfig
from pernn.lab.experiments import CATALOGUE, find_experiment, trials
from pernn.lab.experiments.grids import SMALL_SEEDS, VALIDATION_SEEDS, first_seeds
from pernn.lab.reports import judge_all
from pernn.lab.reports.drawings import draw_curves
from pernn.lab.reports.forms import differences
from pernn.lab.reports.panels import Grid
from pernn.lab.reports.texts import Labels, footer_items
from pernn.lab.store import in_words, load_sweep, save_sweep
from pernn.lab.sweeps import plan_again, plan_sweep, repeat_command
from pernn.lab.trials import Trial

DOCS = Path(__file__).parents[2] / "docs"
OPTIONS = ("--set", "--seeds", "--add")
VOCABULARY = find_experiment("vocabulary_size")


@pytest.fixture
def own_core(monkeypatch):
    """A core of another module, named by its place, as the pages have it."""

    class MinGRUConfig(GRUConfig):
        pass

    module = ModuleType("mingru")
    module.MinGRUConfig = MinGRUConfig
    monkeypatch.setitem(sys.modules, "mingru", module)
    return "mingru:MinGRUConfig"


def grid(changes, experiment=VOCABULARY, *columns):
    flat = [flatten(spec.dump()) for spec in trials(experiment, "demo", changes)]
    return [tuple(one.get(column) for column in columns) for one in flat]


def test_seeds_begin_with_the_published_ones_and_choose_nothing_that_chooses():
    assert first_seeds(8) == SMALL_SEEDS
    assert len(set(first_seeds(100))) == 100
    assert not {*first_seeds(100)} & {*VALIDATION_SEEDS}
    assert grid_changes(None, "2", None) == {"seed": [111, 222]}
    assert grid_changes(None, "666,", None) == {"seed": [666]}
    found = grid(grid_changes(None, "222, 111,999", None), VOCABULARY, "seed")
    assert [seed for (seed,) in found] == [222] * 4 + [111] * 4 + [999] * 4


def test_lists_make_a_grid_with_the_seeds_outermost_unless_the_setting_is_a_list():
    changes = grid_changes(["task.vocab_size=[16, 64]", "core.kind=[gru,lstm]"], None, None)
    found = grid(changes, VOCABULARY, "seed", "task.vocab_size", "core.kind", "encoding.kind")
    assert len(found) == len(set(found)) == len(SMALL_SEEDS) * 2 * 2 * 2
    assert [one[0] for one in found] == sorted(one[0] for one in found)
    assert {one[1:3] for one in found} == {(k, c) for k in (16, 64) for c in ("gru", "lstm")}
    column = "encoding.frequencies"
    one = {f for (f,) in grid({column: [0.8, 0.4]}, VOCABULARY, column)}
    assert one == {None, "[0.8, 0.4]"}
    two = {f for (f,) in grid({column: [[0.8, 0.4], [0.2]]}, VOCABULARY, column)}
    assert two == {None, "[0.8, 0.4]", "[0.2]"}


def test_what_is_added_stands_beside_all_that_was_there(own_core):
    before = trials(VOCABULARY, "demo")
    changes = grid_changes(None, None, [f"core.kind={own_core}", "task.vocab_size=[48,64]"])
    after = trials(VOCABULARY, "demo", changes)
    assert {*before} < {*after}
    added = [spec for spec in after if spec.core.kind == own_core]
    others = [spec for spec in after if spec.core.kind == "lstm"]
    assert [one.override({"core.kind": own_core}) for one in others] == added
    assert {spec.task.vocab_size for spec in added} == {32, 48, 64, 192}
    assert {(spec.core.hidden_size, spec.encoding.kind) for spec in added} == {
        (64, "none"), (64, "sinusoidal"),
    }  # fmt: skip


def test_an_encoding_that_is_added_is_as_wide_and_has_its_control():
    changes = {"encoding.size": 48, "+encoding.kind": "learned"}
    found = grid(changes, VOCABULARY, "encoding.kind", "encoding.size")
    assert set(found) == {("none", None), ("sinusoidal", 48), ("learned", 48)}
    changes = {"encoding.kind": "sinusoidal", "+encoding.kind": "learned"}
    found = grid(changes, VOCABULARY, "encoding.kind")
    assert [found.count((kind,)) for kind in ("none", "sinusoidal", "learned")] == [16] * 3


def recorded(plan, gain):
    found = [{"run": run, **flatten(spec.dump())} for run, spec in plan.specs.items()]
    for one in found:
        noise = one["seed"] * one["task.vocab_size"] * 1e-7
        gained = gain(one) if one["encoding.kind"] != "none" else 0
        one["token_accuracy"] = 0.5 + gained + noise
    return found


def test_figures_and_claims_tell_apart_what_they_did_not_name():
    changes = {"core.hidden_size": [16, 32], "+task.vocab_size": 64}
    plan = plan_sweep(VOCABULARY, "demo", changes)
    records = recorded(plan, lambda flat: flat["core.hidden_size"] / 100)
    with pytest.raises(ConfigError, match="two trials at"):
        judge_all(VOCABULARY.claims, records)
    (helps,) = (one for one in VOCABULARY.claims if one.name == "encoding_helps_lstm")
    judged = judge_all(plan.experiment.claims, records, list(plan.specs.values()))
    found = {one.claim.name: one for one in judged}
    for size in (16, 32):
        one = found[f"{helps.name}@core.hidden_size={size}"]
        assert one.claim.statement.endswith(f"(Hidden size {size}).")
        assert one.interval.estimate == pytest.approx(size / 100)
        assert (one.num_seeds, len(one.cells)) == (8, 3)
    assert plan.experiment.figure.rows == "core.hidden_size"
    assert plan_sweep(VOCABULARY, "demo", {"core.hidden_size": 16}).experiment is VOCABULARY


def test_what_only_encoded_networks_have_is_a_line_and_keeps_its_control():
    column, waves = "encoding.frequencies", "[0.8, 0.4]"
    plan = plan_sweep(VOCABULARY, "demo", {f"+{column}": [0.8, 0.4]})
    gains = {None: 0.1, waves: 0.3}
    records = recorded(plan, lambda flat: gains[flat.get(column)])
    figure = plan.experiment.figure
    assert (figure.lines, figure.rows) == (("encoding.kind", column), None)
    grid = Grid(plan.experiment, records)
    assert grid.order == [("none", None), ("sinusoidal", None), ("sinusoidal", waves)]
    drawn = differences(grid, records)
    means = [np.mean([*line.points[192].values()]) for line in drawn]
    assert means == pytest.approx([0.1, 0.3])
    assert drawn[0].style != drawn[1].style
    found = {one.claim.name: one for one in judge_all(plan.experiment.claims, records)}
    for value, words in ((None, "by default"), (waves, waves)):
        one = found[f"encoding_helps_lstm@{column}={value}"]
        assert one.interval.estimate == pytest.approx(gains[value])
        assert one.claim.statement.endswith(f"(Frequencies {words}).")
    # The vanilla network has no frequencies: its claims are judged once.
    assert found["vanilla_degrades_lstm"].verdict == "contradicted"
    curves = {"update": [5], "loss": [1.0]}
    found = [Trial(run, one.dump(), {}, {}, curves) for run, one in plan.specs.items()]
    assert draw_curves(plan.experiment, found, "demo", ()).inlined


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": []}, "seed is invalid: expected one or more values, got none"),
        ({"+core.kind": "lstm"}, "expected a value to add, got 'lstm', which the grid has already"),
        ({"+task.vocab_size": 32}, r"got 32, which the grid has already \(192, 32\)"),
        ({"+core.kind": "absent_module:Config"}, "cannot be imported: ModuleNotFoundError: No"),
        ({"+core.kynd": 1}, "unknown key, did you mean 'kind'"),
        ({"task.vocab_sise": [1, 2]}, "unknown key, did you mean"),
        ({"+encodin.size": 3}, "has no part 'encodin'"),
        ({"task.vocab_size": [4, "many"]}, "Input should be a valid integer, got 'many'"),
        ({"core.kind": ["gru", "gruu"]}, "no kind 'gruu', did you mean 'gru'"),
        ({"encoding.sise": 1}, "unknown key, did you mean|encoding.sise"),
        ({"encodin.size": 1}, "has no part 'encodin'"),
        ({"pretraining.training.iterations": 1}, "has no part 'pretraining'"),
    ],
)
def test_what_makes_no_grid_is_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        trials(VOCABULARY, "demo", changes)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((["seed=1"], "3", None), "are the same: give one"),
        ((None, "many", None), "expected a number of seeds such as 10, or a list"),
        ((None, "666", None), "expected 1 to 100, got 666; one seed alone is `--set seed=666`"),
        ((None, "0", None), "expected 1 to 100"),
        ((None, "", None), "--seeds is invalid"),
        ((None, None, ["core.kind"]), "--add core.kind: expected path=value"),
    ],
)
def test_options_that_make_no_grid_are_refused(words, said):
    with pytest.raises(ConfigError, match=said):
        grid_changes(*words)


def test_seeds_that_choose_stay_beside_one_seed_and_may_run_alone():
    def seeds_of(value):
        plan = plan_sweep("tuned_vocabulary_size", "demo", {"seed": value})
        return {spec.seed for spec in plan.specs.values()}

    assert seeds_of(111) == seeds_of([111]) == {111, *VALIDATION_SEEDS}
    assert seeds_of([111, 999]) == {111, 999, *VALIDATION_SEEDS}
    assert seeds_of([*VALIDATION_SEEDS]) == {*VALIDATION_SEEDS}
    assert seeds_of([1009]) == {1009}
    with pytest.raises(ConfigError, match="1009 chooses settings and is not judged"):
        seeds_of([111, 1009])


def test_a_value_in_words_is_read_as_itself():
    for value in ("mybook", "1984", "null", "[a]", "0.1:0.2:3", "", [1, "2"], True, 0.5):
        assert parse_assignment(f"path={in_words(value)}") == ("path", value)


def test_a_sweep_knows_its_grid_again(tmp_path, own_core):
    additions = [f"core.kind={own_core}", "task.vocab_size=48", "task.vocab_size=64"]
    changes = grid_changes(["core.hidden_size=16"], "2", additions)
    plan = plan_sweep(VOCABULARY, "demo", changes)
    save_sweep(tmp_path, plan.sweep)
    again = plan_again(load_sweep(tmp_path, plan.sweep.name))
    assert again.sweep == plan.sweep
    assert list(again.specs) == list(plan.specs)
    assert plan.sweep.name != plan_sweep(VOCABULARY, "demo", {}).sweep.name
    words = repeat_command(plan.sweep)
    assert words == (
        "pernn run vocabulary_size --scale demo --set core.hidden_size=16 --set 'seed=[111, 222]' "
        f"--add core.kind={own_core} --add 'task.vocab_size=[48, 64]'"
    )


def test_the_commands_of_the_pages_make_the_grids_that_they_tell_of(own_core):
    grids = []
    for page in ("extend.md", "sweeps.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        (line,) = re.findall(r"^(pernn run vocabulary_size .*--add.*)$", text, re.MULTILINE)
        words = shlex.split(line)
        given = {name: [b for a, b in pairwise(words) if a == name] for name in OPTIONS}
        changes = grid_changes(given["--set"], next(iter(given["--seeds"]), None), given["--add"])
        grids.append(grid(changes, VOCABULARY, "core.kind", "core.hidden_size", "seed"))
    first, second = grids
    assert len(first) == 2 * 32
    assert {one[:2] for one in first} == {("lstm", 64), (own_core, 64)}
    assert len(second) == 2 * 2 * 40
    assert {one[:2] for one in second} == {(c, h) for c in ("gru", "lstm") for h in (32, 64)}
    assert len({seed for _, _, seed in second}) == 10


@pytest.mark.parametrize(
    ("figure", "added", "panels"),
    [
        ("own_core", "core.kind=mingru:MinGRUConfig", {"LSTM", "MinGRU"}),
        ("own_oscillators", "encoding.frequencies=[0.8,0.4,0.2,0.1]", {"LSTM"}),
    ],
)
def test_the_pages_drawings_are_those_of_its_commands(own_core, figure, added, panels):
    assert added in (DOCS / "extend.md").read_text(encoding="utf-8")
    changes = grid_changes(["core.hidden_size=64"], None, [added])
    records = [flatten(spec.dump()) for spec in trials(VOCABULARY, "demo", changes)]
    drawing = (DOCS / "figures" / f"{figure}.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"<!-- (.*) -->", drawing.replace("\u00a0", " "))
    items = " · ".join(drawn).split(" · ")
    assert set(footer_items(VOCABULARY, records, "demo")) <= set(items)
    label = Labels(VOCABULARY.labels)
    assert {label(kind) for kind in (*CORES.names(), own_core)} & set(drawn) == panels


def test_a_kind_decides_what_else_can_be_overridden_in_either_stage():
    changes = {"encoding.size": 96, "encoding.kind": "learned", "encoding.normalize": True}
    specs = trials(VOCABULARY, "demo", changes)
    assert {(spec.encoding.kind, spec.encoding.size) for spec in specs} == {("learned", 96)}
    assert all(spec.encoding.normalize for spec in specs)
    assert len(specs) == 16
    changes = {"training.iterations": 5, "pretraining.training.iterations": 3}
    specs = trials(find_experiment("vocabulary_extension"), "demo", changes)
    assert {spec.num_updates for spec in specs} == {5, 8}
    path = "pretraining.training.iterations"
    figure = plan_sweep("vocabulary_extension", "demo", {path: [5, 6]}).experiment.figure
    assert (figure.lines, figure.rows) == ("encoding.kind", path)


@pytest.mark.parametrize("changes", [{"core.kind": "s4d"}, {"+core.kind": "min_lstm"}])
def test_what_went_with_a_core_is_told_apart_where_it_no_longer_does(changes):
    """Most grids give each core vocabularies of its own; another core has them all."""
    there = [name for name in CATALOGUE if name != "who_needs_a_clock"]  # which has every core
    for name in there:
        plan = plan_sweep(name, "small", changes)
        layout, flat = plan.experiment.figure, [flatten(s.dump()) for s in plan.specs.values()]
        columns = [path for path in (*layout.shown, "seed") if any(path in one for one in flat)]
        if layout.table:
            flat = [one for one in flat if all(path in one for path in columns)]
        places = Counter(tuple(map(one.get, columns)) for one in flat)
        assert set(places.values()) <= {1}, name
    claims = [one.name for one in plan_sweep("anatomy", "small", changes).experiment.claims]
    assert claims == [one.name for one in find_experiment("anatomy").claims]


def test_another_task_is_told_with_the_question():
    plan = plan_sweep("vocabulary_size", "demo", {"task.kind": "sorting"})
    assert plan.experiment.question == f"{VOCABULARY.question} Here with the task Sorting."
    own = plan_sweep("alternative_encodings", "demo", {"task.kind": "reverse_ordering"}).experiment
    assert own.question == find_experiment("alternative_encodings").question


def test_a_kind_that_the_grid_has_is_chosen_from_it():
    whole = trials(VOCABULARY, "small")
    gru = tuple(spec for spec in whole if spec.core.kind == "gru")
    assert trials(VOCABULARY, "small", {"core.kind": "gru"}) == gru
    two = trials(VOCABULARY, "small", {"core.kind": ["gru", "elman"]})
    assert set(two) == {spec for spec in whole if spec.core.kind in ("gru", "elman")}
    # What belongs to another core alone, S4D's place of the target, does not become the GRU's.
    changes = {"core.kind": "gru", "task.vocab_size": [16, 32, 64]}
    specs = trials(find_experiment("gradient_stability"), "small", changes)
    assert {spec.analysis.source_step for spec in specs} == {1}
    assert len(specs) == 3 * 2 * 8
