"""The architecture tests itself: packages, sizes and names of files."""

import ast
import re
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pernn"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BANNED = {"utils", "helpers", "common", "misc", "manager", "data2"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {
    contract["containers"][0]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]
}
PACKAGES = {"pernn": SOURCE, "pernn.lab": SOURCE / "lab"}
name = {"ids": lambda path: str(path.relative_to(ROOT))}


def layers_of(container):
    return [row.split(" | ") for row in CONTRACTS[container]["layers"]]


@pytest.mark.parametrize("container", PACKAGES)
def test_the_contract_lists_every_package(container):
    folder = PACKAGES[container]
    assert CONTRACTS[container]["exhaustive"] is True
    assert "ignore_imports" not in CONTRACTS[container]
    packages = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    packages |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert packages == {package for row in layers_of(container) for package in row}


def room_of(path):
    """Return the dotted name of the package, or single module, that a file belongs to."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(["pernn", *parts[: 2 if parts[0] == "lab" else 1]])


def nodes_of(path, *kinds):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def imported(path):
    yield from ("." * n.level + (n.module or "") for n in nodes_of(path, ast.ImportFrom))
    yield from (alias.name for node in nodes_of(path, ast.Import) for alias in node.names)


def room_in(parts):
    return ".".join(parts[: 3 if parts[1] == "lab" else 2])


# Of all files in one test: to begin a test for each takes longer than to read them.
def test_across_rooms_only_the_package_itself_is_imported():
    for path in FILES:
        own = room_of(path)
        for module in imported(path):
            parts = module.split(".")
            assert not module.startswith(".."), path
            if parts[0] == "pernn" and len(parts) > 1:
                room = room_in(parts)
                assert module == room, f"{path}: {module}: import {room} instead"
                assert room != own, f"{path}: {module}: inside a package, from .file import"


PLACE = re.compile(r"pernn\.(?:lab\.)?\w+[.:][\w.:]*")


def rows_of_rooms():
    layers, lab = (
        [[f"{container}.{one}" for one in row] for row in layers_of(container)]
        for container in PACKAGES
    )
    at = layers.index(["pernn.lab"])
    rows = [*layers[:at], *lab, *layers[at + 1 :]]
    return {room: number for number, row in enumerate(rows) for room in row}


def test_no_string_names_a_module_of_a_higher_package():
    # An import by name would pass the contract unseen.
    rows, upwards = rows_of_rooms(), []
    for path in FILES:
        own = rows.get(room_of(path), -1)
        for text in (node.value for node in nodes_of(path, ast.Constant)):
            found = PLACE.fullmatch(text) if isinstance(text, str) else None
            if found and rows.get(room_in(re.split("[.:]", text)), own) < own:
                upwards.append(f"{path.relative_to(ROOT)}: {text}")
    assert not upwards


@pytest.mark.parametrize("package", sorted({p.parent for p in FILES} - {SOURCE}), **name)
def test_no_package_has_files_in_a_circle(package):
    # Imports within functions and for types count: who reads one file must read the other.
    graph = {
        path.stem: {n.module for n in nodes_of(path, ast.ImportFrom) if n.level == 1 and n.module}
        for path in package.glob("*.py")
        if path.stem != "__init__"
    }
    TopologicalSorter(graph).prepare()


def test_no_file_is_a_drawer_and_annotations_are_live():
    for path in (*FILES, *TESTS):
        parts = {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
        assert not BANNED & parts, path
    # Postponed annotations weaken the shape checks; beartype cannot see `Self` outside a class.
    for path in FILES:
        assert "from __future__ import annotations" not in path.read_text(), path
        assert "Self" not in {node.id for node in nodes_of(path, ast.Name)}, path


@pytest.mark.parametrize("package", sorted(SOURCE.glob("**/__init__.py")), **name)
def test_a_public_name_is_declared_once_and_no_file_of_its_package(package):
    # Importing the file would put the module where the name was promised.
    files = {path.stem for path in package.parent.glob("*.py")}
    parts = package.parent.relative_to(SOURCE.parent).parts
    public = getattr(import_module(".".join(parts)), "__all__", ())
    assert public or package.parent.name == "cli"
    assert not files & set(public)
    # As an import as itself; `pernn.lazy.exports` makes `__all__` and the lazy table of it.
    imports = nodes_of(package, ast.ImportFrom)
    names = [alias.asname for node in imports for alias in node.names if alias.asname]
    assert len(names) == len(set(names))
    strings = {node.value for node in nodes_of(package, ast.Constant)}
    assert not strings & set(names)


def test_dependencies_are_those_agreed_and_torch_is_pinned_without_a_build():
    needed = {requirement.split(">")[0] for requirement in PROJECT["project"]["dependencies"]}
    assert needed == {"torch", "numpy", "jaxtyping"}
    lab = PROJECT["project"]["optional-dependencies"]["lab"]
    assert {requirement.split(">")[0] for requirement in lab} == {
        "pydantic", "typer", "rich", "safetensors", "rapidfuzz", "scipy", "matplotlib", "jinja2",
        "pandas",
    }  # fmt: skip
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert "torch==2.13.0" in pins
    assert not [pin for pin in pins if "+" in pin or "@" in pin or "file:" in pin]
