"""A tuned setting: values tried, extended, chosen and judged, all decided by finished trials."""

import json
import re

import pytest

import pernn.lab
import tiny
from command_line import call, succeed
from pernn.errors import ConfigError
from pernn.lab.evidence import read_reports
from pernn.lab.experiments import Tuning, find_experiment, read_grid, trials
from pernn.lab.experiments.experiment import names_of
from pernn.lab.experiments.grids import VALIDATION_SEEDS
from pernn.lab.experiments.tuning import tune
from pernn.lab.lookup import load_results, read_plan
from pernn.lab.registration import register
from pernn.lab.runners import InlineRunner
from pernn.lab.store import load_sweep
from pernn.lab.sweeps import plan_sweep
from pernn.lab.trials import publish

RATE, PATH = "training.learning_rate", "~training.learning_rate"
TINY = {
    **tiny.TINY,
    "task.num_held_out": 64,
    "training.iterations": 12,
    "training.checkpoint_interval": 6,
}
SEEDS = [111, 222, 333, 444, 555]
BASE = trials(find_experiment("vocabulary_size"), "demo", {**TINY, "seed": SEEDS})
VALUES = (0.001, 0.002, 0.004)


def rates(best, num_finished=None):
    """Trials and choices of a grid whose accuracy peaks at a rate of each encoding."""
    finished = {}

    def score(spec):
        assert spec.seed in VALIDATION_SEEDS
        if num_finished is not None and len(finished) >= num_finished and spec not in finished:
            return None
        rate = spec.training.learning_rate
        return finished.setdefault(spec, -abs(rate - best[spec.encoding.kind]))

    found, chosen = Tuning(RATE, VALUES, "token_accuracy", BASE).trials(score)
    assert len(found) == len({*found})
    return found, {spec.encoding.kind: value for spec, value in chosen.items()}


def of(found, kind, *, judged):
    return {
        (spec.training.learning_rate, spec.seed)
        for spec in found
        if spec.encoding.kind == kind and (spec.seed not in VALIDATION_SEEDS) == judged
    }


def test_at_first_the_grid_is_tried_with_validation_seeds():
    found, chosen = rates({}, num_finished=0)
    assert not chosen
    tuning = Tuning(RATE, VALUES, "token_accuracy", BASE)
    assert [tuning.num_to_come(count) for count in (0, 1, 2)] == [10, 5, 0]
    for kind in ("none", "sinusoidal"):
        assert of(found, kind, judged=False) == {(v, s) for v in VALUES for s in VALIDATION_SEEDS}
        assert not of(found, kind, judged=True)


def test_each_condition_is_judged_at_its_best_value_once_all_of_it_is_there():
    found, chosen = rates({"none": 0.002, "sinusoidal": 0.0021})
    assert chosen == {"none": 0.002, "sinusoidal": 0.002}
    assert of(found, "none", judged=True) == {(0.002, seed) for seed in SEEDS}
    assert len(found) == 2 * (3 * 3 + 5)
    found, chosen = rates({"none": 0.002, "sinusoidal": 0.002}, num_finished=9 + 8)
    assert chosen == {"none": 0.002}
    assert not of(found, "sinusoidal", judged=True)
    _, chosen = rates({"none": 0.003, "sinusoidal": 0.003})
    assert chosen == {"none": 0.002, "sinusoidal": 0.002}


def test_what_lacks_the_setting_stays_as_it_is():
    plan = plan_sweep("vocabulary_size", "demo", {"seed": SEEDS, "~encoding.base": "100:10000:2"})
    made, _ = plan.tuning.trials(lambda spec: None if spec.seed == 3001 else 0.5)
    vanilla = [spec for spec in made if spec.encoding.kind == "none"]
    assert {spec.seed for spec in vanilla} == {*SEEDS}
    assert len(vanilla) == 2 * len(SEEDS)  # both vocabularies
    assert {spec.encoding.base for spec in made if spec not in vanilla} == {100, 10_000}
    assert plan.tuning.num_to_come(0) == 2 * len(SEEDS)
    assert plan.experiment.figure.x_base is None  # what lacks it has a place beside the values


def test_an_end_is_extended_by_the_same_factor_and_not_beyond_what_a_setting_can_be():
    found, chosen = rates({"none": 0.0005, "sinusoidal": 1.0})
    assert chosen == {"none": 0.0005, "sinusoidal": 0.064}
    assert {value for value, _ in of(found, "none", judged=False)} == {0.00025, 0.0005, *VALUES}
    tried = {value for value, _ in of(found, "sinusoidal", judged=False)}
    assert tried == {*VALUES, 0.008, 0.016, 0.032, 0.064}
    assert of(found, "sinusoidal", judged=True) == {(0.064, seed) for seed in SEEDS}
    tuning = Tuning(RATE, (200.0, 400.0), "token_accuracy", BASE)
    _, chosen = tuning.trials(lambda spec: spec.training.learning_rate)
    assert {*chosen.values()} == {800.0}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.001:0.004:3", (0.001, 0.002, 0.004)),
        ("0.001:0.014:9", (0.001, 0.001391, 0.001934, 0.00269, 0.003742, 0.005204, 0.007238)),
        ("1:1e3:4", (1, 10, 100, 1000)),
    ],
)
def test_a_grid_is_geometric(text, values):
    assert read_grid(text)[: len(values)] == values


NO_GRIDS = ["", "0.1", "1:2", "2:1:3", "0:1:3", "1:2:1", "1:inf:3", "a:b:c", "1:2:3:4"]
NO_GRIDS += ["-:1:3", "1:2:0", "1:1.0001:3", "1:2:1000000000"]


@pytest.mark.parametrize("text", NO_GRIDS)
def test_what_is_no_grid_is_refused(text):
    with pytest.raises(ConfigError, match="expected LOW:HIGH:N such as"):
        read_grid(text)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("vocabulary_size", {"~training.rate": "1:2:3"}, "training.rate"),
        ("vocabulary_size", {PATH: "1:2:3", "~seed": "1:2:3"}, "--tune takes one setting"),
        ("vocabulary_size", {PATH: "1:2:3", PATH[1:]: 0.5}, "give one of them"),
        ("vocabulary_size", {PATH: "1:2:3", f"+{PATH[1:]}": [0.5]}, "give one of them"),
        ("vocabulary_size", {PATH: "1:2:3", "seed": [111, 1009]}, "1009 chooses settings"),
        ("learning_rate", {PATH: "1:2:3"}, "its claims choose a setting already"),
        ("gradient_stability", {PATH: "1:2:3"}, "its first metric is similarity"),
    ],
)
def test_what_cannot_be_tuned_is_refused(name, changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        plan_sweep(name, "demo", changes)


@pytest.mark.parametrize(
    ("name", "panels"),
    [
        ("who_needs_a_clock", ("core.kind",)),
        ("vocabulary_size", ("core.kind", "task.vocab_size")),
        ("other_optimizers", ("training.optimizer", "training.frozen_embedding")),
    ],
)
def test_each_panel_of_a_tuned_figure_is_named_once(name, panels):
    experiment = find_experiment(name)
    made, _ = tune(experiment, trials(experiment, "demo"), {PATH: "0.001:0.004:3"})
    assert names_of(made.figure.panels) == panels


@pytest.fixture(scope="module")
def ran(tmp_path_factory, one_format):
    """A tuned experiment, registered, and run by a command that is cut off and repeated."""
    root = tmp_path_factory.mktemp("tuned")
    settings = ", ".join(f'"{path}" = {value}' for path, value in TINY.items())
    (root / "plans").mkdir()
    (root / "plans" / "tuned.toml").write_text(
        f'title = "Tuned"\nseeds = {SEEDS}\n[[experiments]]\nname = "vocabulary_size"\n'
        f'scale = "demo"\nset = {{{settings}, "{PATH}" = "0.003:0.03:2"}}\n'
    )
    _, [(plan, _)] = register(root / "plans" / "tuned.toml")
    words = [word for path, value in TINY.items() for word in ("--set", f"{path}={value}")]
    words += ["--seeds", "5", "--tune", f"{RATE}=0.003:0.03:2", "-r", root / "results"]
    words += ["--runner", "inline", "--force"]
    first = call("run", "vocabulary_size", *words, "--max-trials", "7", cwd=root)
    assert first.returncode == 5, first.stderr
    done = succeed("run", "vocabulary_size", *words, cwd=root)
    return root, plan.sweep.name, done, words


def test_a_tuned_sweep_is_cut_off_goes_on_and_is_judged_at_the_chosen_values(ran):
    root, name, done, words = ran
    said = re.findall(r"Chosen: \S+ = (\S+) for reverse_ordering lstm (\w+)", done.stdout)
    chosen = {kind: float(value) for value, kind in said}
    assert len(said) == len(chosen) == 2
    frame = load_results(root / "results", name)
    for kind, best in chosen.items():
        own = frame[frame["encoding.kind"] == kind]
        tried = own[own["seed"].isin(VALIDATION_SEEDS)].groupby(RATE)["token_accuracy"].mean()
        assert best == tried[tried == tried.max()].index.min()
        judged = own[~own["seed"].isin(VALIDATION_SEEDS)]
        assert {*zip(judged[RATE], judged["seed"], strict=True)} == {(best, s) for s in SEEDS}
    claims = json.loads((root / "results" / "sweeps" / name / "claims.json").read_text())
    assert claims["num_finished"] == claims["num_planned"] == len(frame)
    (one,) = (c for c in claims["claims"] if c["claim"] == "encoding_helps_lstm_tuned")
    assert one["num_seeds"] == 5
    assert one["registration"] == "registered"
    labels = {"sinusoidal": "Position-encoded", "none": "Vanilla"}
    for kind, best in chosen.items():
        assert f"{labels[kind]} {best:.4g}" in one["detail"]
    again = call("run", "vocabulary_size", *words, cwd=root)
    assert "are finished: nothing to do." in again.stdout
    assert f"All {len(frame)} trials of {name}" in again.stdout


def test_published_it_is_the_same(ran, tmp_path):
    pytest.importorskip("pyarrow")
    root, name, _, _ = ran
    results = root / "results"
    publish(results, load_sweep(results, name), tmp_path / "evidence")
    (study,) = read_reports(tmp_path / "evidence", pytest.fail)
    plan = read_plan(results, name, pytest.fail)
    assert study.is_finished
    assert {one.run for one in study.trials} == {*plan.specs}
    # Somebody else's run finds them, stage by stage, and trains nothing.
    found = pernn.lab.run(
        "vocabulary_size",
        overrides=dict(plan.sweep.overrides),
        results=tmp_path / "own",
        evidence=tmp_path / "evidence",
        runner=Refusing(),
    )
    assert not (tmp_path / "own" / "runs").exists()
    claims = json.loads((found.page.parent / "claims.json").read_text())
    assert claims["num_finished"] == len(plan.specs)


class Refusing(InlineRunner):
    def run(self, *arguments):
        raise AssertionError
