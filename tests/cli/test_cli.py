"""The command line as a user meets it: real processes, exit statuses, one clear line."""

import io
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from scenarios.trials import wait_until

from cli.tiny import sweep, tiny_run
from command_line import call as pernn
from command_line import python, succeed
from pernn.errors import install_command, show_time
from pernn.lab.cli import look
from pernn.lab.cli.app import VERBS
from pernn.lab.cli.run import showing
from pernn.lab.runners import TrialEvent
from store.finished import begin
from tiny import tiny

TRIAL = tiny(vocab_size=4, length=6)


def write(spec, folder):
    (folder / "trial.json").write_text(json.dumps(spec.dump()))


def test_a_second_run_does_nothing_and_json_is_all_that_scripts_read(finished):
    assert (sweep(finished) / "index.html").exists()
    before = {path: path.stat().st_mtime_ns for path in (finished / "runs").rglob("*")}
    again = tiny_run(finished)
    assert again.returncode == 0
    assert "All 5 trials" in again.stdout
    assert "nothing to do" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in (finished / "runs").rglob("*")} == before
    summary = json.loads(tiny_run(finished, "--json").stdout)
    assert (summary["num_trials"], summary["num_finished"]) == (5, 5)
    assert {verdict["verdict"] for verdict in summary["verdicts"]} == {"not run"}
    name = summary["sweep"]
    assert json.loads(pernn("status", "-r", finished, "--json").stdout) == {name: {"finished": 5}}
    rows = json.loads(pernn("status", name, "-r", finished, "--json").stdout)[name]
    assert {row["state"] for row in rows} == {"finished"}
    claims = json.loads(pernn("report", "--claims", name, "-r", finished, "--json").stdout)
    assert len(claims) == len(summary["verdicts"])
    report = json.loads(pernn("report", name, "-r", finished, "--json").stdout)
    assert Path(report["page"]).exists()


def test_train_goes_on_from_its_own_spec(tmp_path):
    write(TRIAL, tmp_path)
    first = succeed("train", "trial.json", "--json", cwd=tmp_path)
    result = json.loads(first.stdout)
    spec = Path(result["directory"]) / "spec.json"
    again = json.loads(pernn("train", tmp_path / spec, "--json", cwd=tmp_path).stdout)
    assert again == result
    plain = pernn("train", "trial.json", cwd=tmp_path)
    assert "token_accuracy" in plain.stdout


def test_trials_of_no_sweep_are_resumed_by_name(tmp_path):
    """By what is printed to go on, too, from where the command ran."""
    for seed in (5, 6, 7):
        begin(tmp_path / "my results", TRIAL.override({"seed": seed}))
    words = ("resume", "train", "--runner", "inline", "--max-trials", "1", "-r", "my results")
    named = pernn(*words, cwd=tmp_path)
    assert (named.returncode, named.stderr.count("pernn resume train")) == (5, 1)
    command = shlex.split(re.search("to go on: pernn (.*)", named.stderr).group(1))
    assert pernn(*command, *words[2:6], cwd=tmp_path).returncode == 5
    there = {"cwd": tmp_path, "PERNN_RESULTS": "my results"}
    every = succeed("resume", "--runner", "inline", "--json", **there)
    assert [one["num_finished"] for one in json.loads(every.stdout)] == [3]
    assert not (tmp_path / "my results" / "sweeps" / "train" / "sweep.json").exists()
    assert "nothing to do" in pernn("resume", "train", **there).stdout
    assert pernn("resume", **there).stderr.startswith("No sweeps in")
    assert pernn("resume", "--json", **there).stdout == "[]\n"


def test_the_time_left_is_that_of_updates():
    specs = [TRIAL, TRIAL.override({"seed": 5})]
    run, half = TRIAL.fingerprint(), TRIAL.num_updates // 2
    with showing(specs, Path("nowhere"), Console(file=io.StringIO())) as tally:
        for seconds, update in ((0, 0), (500, 1)):
            tally.progress.get_time = lambda seconds=seconds: seconds
            tally(TrialEvent("running", run, update))
            # Starting processes is no update's time.
            assert tally.progress.tasks[0].time_remaining is None
        tally.progress.get_time = lambda: 1500
        tally(TrialEvent("running", run, half))
        expected = 1000.0 / (half - 1) * (2 * TRIAL.num_updates - half)
        assert tally.progress.tasks[0].time_remaining == pytest.approx(expected, abs=1)
        assert show_time(expected) in tally.progress.tasks[0].fields["left"]
        tally(TrialEvent("stopped", run, half))
        assert tally.updates[run] == half


NO_TORCH = """
import sys
from pernn.lab.cli import main
for words in {}:
    sys.argv = ["pernn", *words.split()]
    try: main()
    except SystemExit as leaving: assert not leaving.code
    assert "torch" not in sys.modules, words
    assert "matplotlib" not in sys.modules or "resume" not in words
"""


def test_neither_help_nor_a_second_run_loads_torch(finished):
    verbs = (f"resume -r {finished}", "list", "status", "--help", "show vocabulary_size")
    done = python("-c", NO_TORCH.format(verbs))
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb):
    done = succeed(verb, "--help", columns=80)
    text, _, examples = done.stdout.partition("Example")
    # An example is whole, to be copied.
    assert max(map(len, text.splitlines())) <= 80
    lines = examples.partition("\n\n")[0].splitlines()[1:]
    assert lines
    assert all(re.match(r" +(\w+=\S+ )?pernn ", line) for line in lines)
    assert f"pernn {verb}" in done.stdout.replace("Usage: python -m", "")


def test_help_of_eighty_columns_cuts_nothing_and_show_tells_grid_cost_claims_and_command():
    text = pernn("run", "--help", columns=80).stdout
    for whole in (
        "'task.vocab_size=[16,64]'",
        "core.kind=mymodule:MinGRUConfig;",
        "<local|inline|ray",
    ):
        assert whole in text
    assert "the others go on\n  from their last checkpoint and end in the same bits." in text
    shown = json.loads(pernn("show", "vocabulary_size", "-s", "paper", "--json").stdout)
    assert shown["num_trials"] == 560
    assert len(shown["specs"]) == 560
    assert shown["command"].startswith("pernn run vocabulary_size --scale paper")
    text = pernn("show", "vocabulary_size").stdout
    assert "32 trials" in text
    assert "vanilla_degrades_gru" in text


def blocked(tmp_path):
    """A results directory that cannot be made: a file stands in its place."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "results"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["run", "vocabulary_sise"], 2, "did you mean 'vocabulary_size'"),
        (["run", "vocabulary_size", "-s", "tiny"], 2, "no scale 'tiny'"),
        (["run", "vocabulary_size", *["--set", "seed=1"] * 2], 2, "seed stands twice"),
        (["train", "{trial}", "--set", "task.num_held_out=5000"], 2, "only 4,096 sequences"),
        (["train", "absent.toml"], 2, "absent.toml"),
        (["train", "{trial}", "--device", "cuda:99"], 3, "no device 'cuda:99' here"),
        (["train", "{trial}", "-r", "{blocked}"], 4, "Not a directory"),
        (["run", "vocabulary_size", "-r", "{blocked}"], 4, "Not a directory"),
        (["export", "{sweep}", "-r", "{done}", "-o", "{blocked}/a.csv"], 4, "Not a directory"),
        (["publish", "{sweep}", "-r", "{done}", "--to", "{blocked}"], 4, "Not a directory"),
        (["status", "nothing", "-r", "{here}"], 2, "no sweep 'nothing'"),
        (["report", "--claims", "../../etc", "-r", "{here}"], 2, "not a sweep's name"),
        (["export", "x", "-o", "records.xls", "-r", "{here}"], 2, "no sweep 'x'"),
        (["lst"], 2, "No such command"),
        (["run", "vocabulary_size", "--jobs", "0"], 2, "jobs"),
        (["run", "vocabulary_size", "--jobs", "9999", "-r", "{here}"], 2, "--oversubscribe"),
        (["run", "vocabulary_size", "--time-limit", "soon", "-r", "{here}"], 2, "such as 90s"),
        (["train", "{trial}", "--threads", "9999"], 2, "--oversubscribe"),
        (["pause", "x", "-r", "{here}"], 2, "no sweep 'x'"),
        (["compare", "core.kind=gru", "x", "-r", "{here}"], 2, "expected two conditions such as"),
        (
            ["compare", "seed=1", "seed=2", "-r", "{here}"],
            2,
            "no finished trials to select from in",
        ),
        (["report", "x", "--all"], 2, "--all"),
        (["report"], 2, "--all"),
        (["analyze", "."], 2, "is not a run directory"),
        (["analyze", "runs/0123456789abcdef"], 2, "with a spec.json"),
        (["errors", "."], 2, "is not a run directory"),
        (["prepare", "sorting"], 2, "there is nothing to prepare"),
        (["prepare", "sorting", "--characters"], 2, "sorting is no file: --name, --share"),
        (["prepare", "book.txt", "--set", "seed=1"], 2, "is a file: --scale and --set"),
        (["prepare", "languagemodelling"], 2, "did you mean 'language_modelling'"),
        (["show", "vocabulary_size", "--sample", "2"], 2, "vocabulary_size is no task"),
        (["show", "reverse_ordering", "--scale", "paper"], 2, "is a task: it takes --sample, "),
        (["show", "sorting", "--sample", "1", "--set", "hold_time=2"], 2, "hold_time: unknown key"),
        (["show", "sortin"], 2, "no experiment"),
    ],
)
def test_bad_input_gets_one_clear_line(finished, tmp_path, words, status, said):
    write(TRIAL, tmp_path)
    places = {"trial": tmp_path / "trial.json", "blocked": blocked(tmp_path), "here": tmp_path}
    places |= {"done": finished, "sweep": sweep(finished).name}
    done = pernn(*(word.format(**places) for word in words), cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert said in done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith("pernn: ")]
    assert len(complaints) <= 1


def test_ctrl_c_loses_nothing(tmp_path):
    write(TRIAL.override({"training.iterations": 1_000_000}), tmp_path)
    words = [sys.executable, "-m", "pernn", "train", "trial.json"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any(tmp_path.glob("results/runs/*/checkpoints/update-*")))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "goes on from here" in said
    assert "Traceback" not in said
    (journal,) = tmp_path.glob("results/runs/*/journal.jsonl")
    assert json.loads(journal.read_text().splitlines()[-1])["event"] == "stopped"


AT_ONCE = """
import os
import sys


class Signal:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            # Interrupted within an `eval`, as imports have, a module is ended by SIGINT.
            eval("os.kill(os.getpid(), {number})")


sys.meta_path.insert(0, Signal())
sys.argv = ["pernn", "report", "x"]
from pernn.lab.cli import main

main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("pernn.lab.cli.app", signal.SIGINT),
        ("typer", signal.SIGINT),
        ("pernn.lab.cli.results", signal.SIGUSR1),
        ("pernn.lab.sweeps", signal.SIGTERM),
    ],
)
def test_a_signal_while_a_verb_is_loaded_is_an_interruption(tmp_path, module, number):
    (tmp_path / "at_once.py").write_text(AT_ONCE.format(module=module, number=int(number)))
    done = python("-m", "at_once", cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr.startswith("pernn: interrupted")
    assert "Traceback" not in done.stderr


def test_doctor_finds_what_is_here_and_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(look, "describe_versions", dict.fromkeys)
    monkeypatch.setenv("COLUMNS", "200")
    assert look.doctor() == 3
    shown = capsys.readouterr().out
    said = ["pip install torch", *map(install_command, ("parquet", "ray"))]
    assert [one for one in said if one not in shown] == []
    assert "hypothesis" not in shown
    found = {one["what"]: one for one in json.loads(succeed("doctor", "--json").stdout)}
    assert found["package torch"]["present"]


def test_a_closed_pipe_is_no_error():
    command = f"{Path(sys.executable).with_name('pernn')} show vocabulary_size --json | head -1"
    words = ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_truncated_checkpoint_is_said_in_one_line_and_costs_nothing(tmp_path):
    write(TRIAL, tmp_path)
    first = json.loads(pernn("train", "trial.json", "--json", cwd=tmp_path).stdout)
    run = tmp_path / first["directory"]
    (run / "result.json").unlink()
    newest = max((run / "checkpoints").iterdir()) / "tensors.safetensors"
    newest.write_bytes(newest.read_bytes()[:64])
    again = succeed("train", "trial.json", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == first
    lines = [line for line in again.stderr.splitlines() if line.startswith("warning: ")]
    assert len(lines) == 1
    assert "damaged checkpoint set aside" in lines[0]


def test_what_is_no_longer_needed_is_deleted_when_told(finished, tmp_path):
    finished = shutil.copytree(finished, tmp_path / "results")
    name = sweep(finished).name
    asked = pernn("prune", name, "-r", finished)
    assert asked.returncode == 2
    assert "say --yes" in asked.stderr
    dry = json.loads(pernn("prune", name, "-r", finished, "--dry-run", "--json").stdout)
    assert len(list(finished.glob("runs/*/checkpoints/update-*"))) == 10
    done = pernn("prune", name, "-r", finished, "--yes", "--json")
    assert json.loads(done.stdout) == {**dry, "dry_run": False}
    assert dry["num_checkpoints"] == 5
    assert len(list(finished.glob("runs/*/checkpoints/update-*"))) == 5
    assert pernn("report", name, "-r", finished).returncode == 0


def test_without_words_it_helps():
    helped, asked = (succeed(*words, columns=80).stdout for words in ((), ("--help",)))
    assert helped == asked
