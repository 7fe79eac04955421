"""README's length and commands, examples of PyTorch, and the links of every page."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from command_line import call
from pernn.analysis import KINDS
from pernn.lab.cli.app import EXIT_STATUSES, VERBS
from pernn.lab.cli.options import read_duration
from pernn.lab.experiments import find_experiment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
PYTORCH = (ROOT / "docs/pytorch.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_the_readme_is_read_in_a_minute_starts_with_two_commands_and_has_marks():
    """Counted raw, as `wc` does: marks, tables and addresses too."""
    first, second, *_ = commands(README)
    assert (first, second) == ("make demo", "make test")
    assert len(README.split()) <= 900
    assert len(README.encode()) <= 8_000
    rows = re.findall(r"^\| (?!claim|-).*$", README, flags=re.MULTILINE)
    assert [re.findall(r"<!-- /(\w+) -->", row) for row in rows] == 9 * [["effect", "verdict"]]


def test_its_example_runs():
    (example,) = blocks("python", README)
    assert len(example.splitlines()) <= 8
    with torch.random.fork_rng():
        found = {}
        exec(example, found)  # noqa: S102
    assert found["outputs"].shape == (4, 10, 64)
    assert not found["outputs"][1, 7:].any()


def test_the_example_of_a_network_is_short_and_learns(capsys):
    example, _, layers = blocks("python", PYTORCH)
    assert len(example.splitlines()) <= 12
    with torch.random.fork_rng():
        torch.manual_seed(1)
        exec(layers, {})  # noqa: S102
        torch.manual_seed(1)
        exec(example, {})  # noqa: S102
    found = re.fullmatch(r"token accuracy: tensor\((.*)\)\n", capsys.readouterr().out)
    assert float(found[1]) > 0.2  # chance is 1/16


def test_a_network_of_the_hubs_mixin_comes_back_from_its_folder(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(blocks("python", PYTORCH)[1], found)  # noqa: S102
    network, tokens = found["network"], torch.randint(16, (3, 5))
    again = found["Reverser"].from_pretrained("reverser")
    assert torch.equal(network(tokens, num_queries=5), again(tokens, num_queries=5))
    weights = load_file("reverser/model.safetensors")
    assert all(torch.equal(one, weights[name]) for name, one in network.state_dict().items())


@pytest.mark.parametrize("numbers", ["float32", "float64", "bfloat16", "float16"])
def test_the_table_of_precisions_is_true(numbers):
    from pernn import PositionEncodedRNN

    (row,) = re.findall(rf"^\| CPU \| `{numbers}` \|(.*)\|$", PYTORCH, flags=re.MULTILINE)
    _, gated, state_space, _ = (cell.strip() for cell in row.split("|"))
    dtype = getattr(torch, numbers)
    for core in ("lstm", "gru", "elman", "s4d"):
        works = (state_space if core == "s4d" else gated) == "yes"
        model = PositionEncodedRNN(4, core=core, embedding_size=8, hidden_size=8).to(dtype)
        tokens = torch.zeros(2, 3, dtype=torch.int64)
        try:
            outputs = model(tokens, num_queries=3)
        except (RuntimeError, NotImplementedError, UserWarning):
            assert not works, core
        else:
            outputs.sum().backward()
            assert works, core
            assert outputs.dtype == dtype


TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def commands(text):
    """The lines of a page's shell blocks, without prompts and comments."""
    for block in blocks("sh", text):
        for line in block.splitlines():
            yield from filter(None, [line.partition(" #")[0].strip()])


GONE = {"bench", "query", "ui"}
"""Verbs of the past (history 0028 and 0036), which only decisions may name."""


# Of all pages in one test: to begin a test for each takes longer than to read them.
def test_pages_name_what_exists_and_begin_no_line_with_a_number():
    for page in PAGES:
        for verb in re.findall(r"`pernn ([a-z]+)", TEXTS[page]):
            assert verb in VERBS or (verb in GONE and page.parent.name == "decisions"), page
        for time in re.findall(r"--time-limit ([\w:.]+)", TEXTS[page]):
            assert read_duration(time) > 0, page
        for line in commands(TEXTS[page]):
            words = line.split()
            program = words[0].rpartition("/")[2]
            if program == "make":
                assert set(words[1:]) <= TARGETS, (page, line)
            elif program == "pernn":
                assert words[1] in VERBS, (page, line)
                if "--scale" in words and words[2] == "vocabulary_size":
                    assert words[words.index("--scale") + 1] in find_experiment(words[2]).scales
    mark = re.compile(r"^ *<!-- (?:effect|seen|verdict) .*", re.MULTILINE)
    assert [page for page in PAGES if mark.search(TEXTS[page])] == []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:|#", target):
                assert (page.parent / target.partition("#")[0]).exists(), (page, target)


def test_no_interval_is_printed_by_hand_and_exit_statuses_are_the_programs():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", COMMANDS, flags=re.MULTILINE)
    assert {int(status): meaning for status, meaning in rows} == EXIT_STATUSES
    assert "--install-completion" in call("--help").stdout
    said = call("run", "--help").stdout
    assert [option for option in ("--set", "--json", "--results") if option not in said] == []
    assert INTERVAL.search("it falls by −0.020 nats [−0.036, −0.003] at first")
    for page in (*FINDINGS, *EXPERIMENTS):
        assert not INTERVAL.search(FILLED.sub("", TEXTS[page])), page


def test_the_architectures_table_has_the_contracts_rows():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    tables = re.split(r"^\| row \|", text, flags=re.MULTILINE)[1:]
    for table, contract in zip(tables, contracts, strict=True):
        listed = {}
        for row, package in re.findall(r"^\| (\d+) \| `(\w+)` \|", table, flags=re.MULTILINE):
            listed.setdefault(int(row), []).append(package)
        layers = [sorted(row.split(" | ")) for row in contract["layers"]]
        assert [sorted(listed[row]) for row in sorted(listed)] == layers


def test_every_decision_has_a_number_of_its_own_and_four_parts():
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    table, _, elsewhere = (folder / "history.md").read_text(encoding="utf-8").partition("In force")
    gone = re.findall(r"^\| (\d{4}) \|", table, re.MULTILINE)
    told = re.findall(r"\b\d{4}\b", elsewhere)
    numbers = sorted([*gone, *told, *(file[:4] for file in files)])
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
    for file in files:
        text = (folder / file).read_text(encoding="utf-8")
        heads = re.findall(r"^\*\*(\w+)\.\*\*", text, flags=re.MULTILINE)
        assert heads == ["Context", "Decision", "Why", "Consequences"]


EXPERIMENTS = sorted((ROOT / "docs/reproduce").glob("*.md"))
FINDINGS = [ROOT / "README.md", ROOT / "docs/article/article.md"]
FINDINGS += [ROOT / f"docs/evidence/{page}.md" for page in ("report", "mechanism")]
FILLED = re.compile(r"<!-- (\w+) \S+ -->.*?<!-- /\1 -->", re.DOTALL)
INTERVAL = re.compile(r"[−+-]?\d+(?:\.\d+)?(?:\s+nats)?\s+\[[−+-]?\d+(?:\.\d+)?,\s+[−+-]?\d")


def test_pages_of_experiments_parse_and_have_the_findings_of_each_sweep():
    for page in EXPERIMENTS:
        fences = re.findall(r"^```(\w*)$", TEXTS[page], re.MULTILINE)
        assert all(fences[::2]), page
        assert not any(fences[1::2]), page
        for block in blocks("python", TEXTS[page]):
            ast.parse(block)
    for claims in (ROOT / "docs/evidence").glob("*/claims.json"):
        sweep = claims.parent.name
        page = ROOT / f"docs/reproduce/{sweep.partition('-')[0]}.md"
        assert f"<!-- findings {sweep} -->" in page.read_text(), sweep


def test_the_examples_run_and_the_table_is_complete():
    page, names = (ROOT / "docs/analysis.md").read_text(encoding="utf-8"), {}
    examples = blocks("python", page)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for block in examples:
            exec(block, names)  # noqa: S102
    assert len(examples) == 6
    described = set(re.findall(r"^\| `([a-z_]+)` \|", page, flags=re.MULTILINE))
    columns = set(names["table"]) - {"condition", "target", "disturbants", "num_pairs"}
    assert described == columns
    assert set(KINDS) < columns
