"""The architecture tests itself: packages, sizes and names of files."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pernn"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BANNED = {"utils", "helpers", "common", "misc", "manager", "data2"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
name = {"ids": lambda path: str(path.relative_to(ROOT))}


def test_imports_go_downwards():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_contract_lists_every_package():
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    assert contract["exhaustive"] is True
    assert "ignore_imports" not in contract
    listed = {package for row in contract["layers"] for package in row.split(" | ")}
    packages = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    packages |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == listed


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", FILES, **name)
def test_across_rooms_only_the_package_itself_is_imported(path):
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for module in imported(path):
        parts = module.split(".")
        assert not module.startswith("..")
        if parts[0] == "pernn" and len(parts) > 1:
            assert len(parts) == 2, f"{module}: import pernn.{parts[1]} instead"
            assert parts[1] != package, f"{module}: inside a package, from .file import"


@pytest.mark.parametrize("path", [*FILES, *TESTS], **name)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", [*FILES, *TESTS], **name)
def test_no_file_or_folder_is_a_drawer(path):
    assert not BANNED & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}


@pytest.mark.parametrize("path", FILES, **name)
def test_annotations_are_live(path):
    # Postponed annotations weaken the shape checks; beartype cannot see `Self` outside a class.
    text = path.read_text()
    assert "from __future__ import annotations" not in text
    tree = ast.parse(text)
    assert not any(isinstance(node, ast.Name) and node.id == "Self" for node in ast.walk(tree))


@pytest.mark.parametrize("package", sorted(SOURCE.glob("*/__init__.py")), **name)
def test_no_public_name_is_also_a_file_of_its_package(package):
    # Importing the file would put the module where the name was promised.
    files = {path.stem for path in package.parent.glob("*.py")}
    assert not files & public_names(package)


def public_names(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_there_are_no_more_dependencies_than_agreed():
    needed = {requirement.split(">")[0] for requirement in PROJECT["project"]["dependencies"]}
    assert needed == {
        "torch", "numpy", "pydantic", "typer", "rich", "safetensors", "rapidfuzz", "scipy",
        "matplotlib", "jinja2", "jaxtyping",
    }  # fmt: skip


def test_the_tested_torch_is_pinned_without_a_build():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert "torch==2.13.0" in pins
    assert not [pin for pin in pins if "+" in pin or "@" in pin or "file:" in pin]
