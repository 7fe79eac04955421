"""A docstring's first line names or commands in twelve words, and says no second thing."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pernn"
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


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("Return the Jacobian.", True),
        ("Set A = −½ + iπn, for n = 1 … N, in each layer.", True),
        ("One two three four five six seven eight nine ten eleven twelve thirteen.", False),
        ("Return the Jacobian; it is large.", False),
        ("What is measured.", False),
    ],
)
def test_of_the_rule(line, good):
    assert is_short(line) == good


def test_first_lines_are_short():
    found = {
        f"{path.relative_to(SOURCE)}: {name}: {line}"
        for path in SOURCE.rglob("*.py")
        for name, line in first_lines(path.read_text(encoding="utf-8"))
        if not is_short(line)
    }
    assert found == set()
