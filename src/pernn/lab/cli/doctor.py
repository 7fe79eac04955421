"""`pernn doctor`."""

import os
import platform
import re
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pernn.errors import MachineError, install_command
from pernn.lab.store import physical_memory

from .options import RESULTS, Json, Results, num_cores, print_json

OTHERS = ("browser", "dev", "pdf", "site")
"""Extras that nothing in a run needs."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        what: What it is.
        present: Whether it is there and works.
        found: What was seen.
        required: Whether pernn needs it.
        remedy: How to get it.
    """

    what: str
    present: bool
    found: str
    required: bool = True
    remedy: str = ""


def doctor(results: Results = RESULTS, as_json: Json = False) -> int:
    """Show what this machine has and how to get what is missing.

    Example: pernn doctor
    """
    findings = examine(results)
    if as_json:
        print_json([vars(one) for one in findings])
    else:
        console, table = Console(), Table("", "What", "Found")
        for one in findings:
            absent = "[red]missing[/red]" if one.required else "[dim]absent[/dim]"
            mark = "[green]ok[/green]" if one.present else absent
            table.add_row(mark, escape(one.what), escape(one.found))
        console.print(table)
        for one in findings:
            if not one.present:
                # Unbroken, so that a command can be copied.
                console.print(f"{one.what}: {one.remedy}", markup=False, soft_wrap=True)
    return 3 if any(one.required and not one.present for one in findings) else 0


def examine(results: Path) -> list[Finding]:
    """Look at packages, processor, accelerators, memory and the results directory."""
    return [
        Finding("Python", True, platform.python_version()),
        *_packages(),
        Finding("CPU cores", True, str(num_cores())),
        Finding("memory", True, f"{physical_memory() / 2**30:.0f} GiB"),
        _arithmetic(),
        _updates(),
        _accelerator(),
        _directory(results),
    ]


def _packages() -> list[Finding]:
    """Look for what pernn's own metadata names, with the extra that a package comes with."""
    found: dict[str, Finding] = {}
    for line in requires("pernn") or ():
        name, extra = re.match(r"([\w.-]+)[^;]*(?:; extra == '(\w+)')?", line).groups()  # type: ignore[union-attr]
        # Two extras may need one package: the one of its name wins.
        if extra in OTHERS or (name in found and extra != name):
            continue
        remedy = install_command(extra) if extra else f"pip install {name}"
        try:
            seen = version(name)
        except PackageNotFoundError:
            seen = ""
        found[name] = Finding(f"package {name}", bool(seen), seen, extra is None, remedy)
    return [*found.values()]


def _arithmetic() -> Finding:
    """Return what computes here; kernels are compiled now if that was never done."""
    remedy = "a C++ compiler with OpenMP, such as g++; without one, training is slower"
    try:
        from pernn.kernels import describe_arithmetic, find_kernels

        present, found = find_kernels() is not None, describe_arithmetic()
    except (ImportError, MachineError) as error:
        present, found = False, str(error)
    return Finding("CPU arithmetic", present, found, False, remedy)


def _updates() -> Finding:
    """Return whether updates of the usual network are single compiled calls here."""
    try:
        import torch

        from pernn.kernels import has_whole_updates

        present = has_whole_updates(torch.device("cpu"))
    except (ImportError, MachineError):
        present = False
    found = (
        "one compiled call (one layer of elman, gru or lstm, up to 384 units, fp32)"
        if present
        else "autograd"
    )
    remedy = "a C++ compiler with OpenMP and a processor with AVX2 or AVX-512"
    return Finding("CPU updates", present, found, False, remedy)


def _accelerator() -> Finding:
    remedy = "a CUDA build of torch and an NVIDIA driver; everything also runs on the CPU"
    try:
        import torch
    except ImportError as error:
        return Finding("CUDA device", False, str(error), False, remedy)
    if not torch.cuda.is_available():
        return Finding("CUDA device", False, "none", False, remedy)
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Finding("CUDA device", True, ", ".join(names), False)


def _directory(results: Path) -> Finding:
    """Look whether results can be written, and how much room there is."""
    place = results.absolute()
    while not place.exists():
        place = place.parent
    writable = place.is_dir() and os.access(place, os.W_OK)
    free = shutil.disk_usage(place).free / 2**30
    found = f"{results}: {free:.0f} GiB free" if writable else f"{results}: not writable"
    return Finding("results directory", writable, found, True, "choose another with --results")
