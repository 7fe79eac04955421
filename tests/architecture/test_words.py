"""One word per thing: retired ones stand nowhere in the source and the pages."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RETIRED = '''
positional encoding, encoding; PE in figures | position code | sinusoidal code | learned code
positional encoding, encoding; PE in figures | random code | code size | CodeConfig
positional encoding, encoding; PE in figures | project_codes | .codes(
combine | encoding.attach | attach=
repeated embedding | DoubleConfig
bias_hn | late_bias | grad_late
output layer | read-out | LinearReadout | reset_readout | network.readout | model.readout
device batch | Shown
predictions | Answers
metric | measures= | tasks.measures
number of draws | task.num_words | source.num_words
preset | PROTOCOLS | ProtocolName | --set protocol | spec.protocol | trial.protocol
preset | protocol as-run
source step | analysis.source  | s4d_source=
diverged | num_lost
state of a run | standing | Standing
package, interface, registry | rooms | Rooms | a room | room's | seam | seams | Kinds
sort key, paused garbage collection | import rank | key=rank | without_collection
Return … | """Give | """Gives | """Say
is invalid: expected …, got … | cannot be meant
contains NaN or infinity | what is no number | numbers are none
is not a pernn core | is none of ours
N, this many | so many
download it again | get it anew | get the files anew
prepared from | retold with
to keep … busy | for want of
'''
"""Word of docs/glossary.md, or what to write | what nobody writes any more."""
PAGES = [
    *ROOT.glob("src/pernn/**/*.py"),
    *ROOT.glob("src/pernn/**/*.jinja"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/reproduce/*.md"),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]


def uses(term, text):
    if term not in text:  # which is soon found out
        return []
    before = r"(?<!\w)" if term[0].isalnum() else ""
    after = r"(?!\w)" if term[-1].isalnum() else ""
    pattern = re.compile(before + re.escape(term) + after)
    return [line.strip() for line in text.splitlines() if pattern.search(line)]


def test_no_retired_word_is_used():
    terms, found = [term for line in RETIRED.splitlines() for term in line.split(" | ")[1:]], {}
    for page in PAGES:
        name, text = str(page.relative_to(ROOT)), page.read_text()
        found |= {(name, term): lines for term in terms if (lines := uses(term, text))}
    assert not found


SOURCE = ROOT / "src" / "pernn"
QUESTIONS = {"What", "How", "Whether", "Where", "Which", "Who"}


def first_lines(text):
    """Name → first line of the docstring: of a module, its public classes, functions, methods."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name, said = getattr(node, "name", "module"), ast.get_docstring(node)
            if said and not name.startswith("_"):
                yield name, said.splitlines()[0]


def is_short(line):
    words = [word for word in line.split() if any(map(str.isalnum, word))]
    return len(words) <= 12 and ";" not in line and words[0] not in QUESTIONS


def test_first_lines_are_short():
    found = {
        f"{path.relative_to(SOURCE)}: {name}: {line}"
        for path in SOURCE.rglob("*.py")
        for name, line in first_lines(path.read_text(encoding="utf-8"))
        if not is_short(line)
    }
    assert found == set()
