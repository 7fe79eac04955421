"""Ratios per class of processor, each imitated on this machine in a process of its own."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pernn.runs import RunSpec, describe_environment
from pernn.training import choose_device

from .processor_classes import CLASSES

TIMEOUT_SECONDS = 900


TIMED = ("amx", "avx512-bf16", "avx512-amd", "avx2", "no-compiler")
"""Those of `CLASSES` that are measured, in the order of the table."""


@dataclass(frozen=True)
class ClassRatios:
    """What was measured of one class.

    Attributes:
        label: Its name in a table.
        environment: Variables that imitate it.
        kernels: What computed; empty if nothing could be measured.
        problem: Why nothing was measured; else empty.
        ratios: For each case, the good script's time over ours, round by round.
        seconds: Likewise our times.
    """

    label: str
    environment: dict[str, str]
    kernels: str
    problem: str
    ratios: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]


def measure_class(name: str, specs: Sequence[RunSpec], *, threads: int, rounds: int) -> ClassRatios:
    """Run all cases in a process that sees only the instructions of a class.

    Args:
        name: One of `TIMED`.
        specs: Cases, each reverse ordering of ids.
        threads: CPU threads.
        rounds: Measurements of each case at least.
    """
    wanted = CLASSES[name]
    order = {"specs": [spec.dump() for spec in specs], "threads": threads, "rounds": rounds}

    def missing(problem: str, kernels: str = "") -> ClassRatios:
        return ClassRatios(wanted.label, wanted.variables, kernels, problem, (), ())

    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pernn.performance.ratios"],
            input=json.dumps(order),
            env=wanted.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return missing(f"took more than {TIMEOUT_SECONDS} s")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["nothing printed"])[-1]
        return missing(f"exit status {done.returncode}: {last[:200]}")
    head, cases = lines[0], lines[1:]
    if not wanted.describes(head["arithmetic"]):
        return missing("cannot be imitated here", head["kernels"])
    return ClassRatios(
        label=wanted.label,
        environment=wanted.variables,
        kernels=head["kernels"],
        problem="",
        ratios=tuple(tuple(case["ratios"]) for case in cases),
        seconds=tuple(tuple(case["seconds"]) for case in cases),
    )


def compare_classes(
    cases: Sequence[tuple[str, RunSpec]],
    *,
    threads: int,
    rounds: int,
    on_class: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Measure cases, by name, under each class of `TIMED`.

    Returns:
        As plain values the environment, threads, names of the cases, what was measured of each
        class, and a table of it in Markdown.
    """
    names, found = [name for name, _ in cases], []
    for name in TIMED:
        on_class(name)
        specs = [spec for _, spec in cases]
        found.append(measure_class(name, specs, threads=threads, rounds=rounds))
    return {
        "environment": describe_environment(choose_device("cpu")),
        "threads": threads,
        "cases": names,
        "classes": [asdict(one) for one in found],
        "markdown": class_table(names, found),
    }


def class_table(names: Sequence[str], found: Sequence[ClassRatios]) -> str:
    """Return Markdown: a row for each case, a column for each class, medians and whole ranges."""

    def cell(one: ClassRatios, case: int) -> str:
        values = one.ratios[case]
        return f"{statistics.median(values):.2f} ({min(values):.2f} – {max(values):.2f})"

    shown = [one for one in found if not one.problem]
    rows = [["(b) / ours", *(one.label for one in shown)], ["---"] * (len(shown) + 1)]
    rows += [[name, *(cell(one, case) for one in shown)] for case, name in enumerate(names)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines += [f"\n{one.label}: {one.problem}" for one in found if one.problem]
    return "\n".join(lines)
