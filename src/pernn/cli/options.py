"""Options that several verbs share."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pernn.config import parse_assignment
from pernn.errors import ConfigError
from pernn.experiments import ADDED, TUNED, first_seeds
from pernn.store import evidence_folder

Results = Annotated[
    Path,
    typer.Option("--results", "-r", envvar="PERNN_RESULTS", help="Results directory."),
]
IgnorePublished = Annotated[
    bool,
    typer.Option(
        "--ignore-published",
        help="Do not count published trials (in `evidence`, or PERNN_EVIDENCE) as done.",
    ),
]
SweepName = Annotated[
    str,
    typer.Argument(
        help="A sweep (see `pernn status`), an experiment, or `train` for those of `pernn train`.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Scale = Annotated[str, typer.Option("--scale", "-s", help="demo, small or paper.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a value in every spec, e.g. core.hidden_size=256; may be repeated. For an "
        "experiment, a list makes a grid: 'task.vocab_size=[16,64]'.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="N|SEED,SEED",
        help="How many seeds (the published ones first: 111, 222 …), or which.",
    ),
]
Additions = Annotated[
    list[str] | None,
    typer.Option(
        "--add",
        metavar="PATH=VALUE",
        help="Add a value to the experiment's own in the grid, e.g. "
        "core.kind=mymodule:MinGRUConfig; may be repeated.",
    ),
]
Tune = Annotated[
    str | None,
    typer.Option(
        "--tune",
        metavar="PATH=LOW:HIGH:N",
        help="Choose a setting for each condition by validation seeds, among N values a factor "
        "apart and further ones beyond an end, then run the seeds at the chosen values, e.g. "
        "training.learning_rate=0.001:0.014:9.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Trials at a time; the default is one per CPU core."),
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="CPU threads of each trial.")]
Device = Annotated[
    str, typer.Option("--device", help="auto (CUDA if there is any, else CPU), cpu, cuda, cuda:1 …")
]
RESULTS = Path("results")


def overrides(assignments: list[str] | None) -> dict[str, Any]:
    """Read the values of `--set`."""
    return dict(parse_assignment(text) for text in assignments or [])


def grid_changes(
    assignments: list[str] | None,
    seeds: str | None,
    additions: list[str] | None,
    tuned: str | None = None,
) -> dict[str, Any]:
    """Read what `--set`, `--seeds`, `--add` and `--tune` change in an experiment's grid.

    Raises:
        ConfigError: If one cannot be read, or the seeds are given twice.
    """
    changes = overrides(assignments)
    if seeds is not None:
        if "seed" in changes:
            raise ConfigError("--seeds and --set seed=… are the same: give one of them")
        changes["seed"] = _read_seeds(seeds)
    if tuned is not None:
        path, grid = parse_assignment(tuned, "--tune")
        changes[f"{TUNED}{path}"] = grid
    added: dict[str, list[Any]] = {}
    for path, value in (parse_assignment(text, "--add") for text in additions or []):
        added.setdefault(f"{ADDED}{path}", []).append(value)
    return changes | {k: some if len(some) > 1 else some[0] for k, some in added.items()}


def _read_seeds(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(re.fullmatch(r"\d{1,20}", word, re.ASCII) for word in words):
        raise ConfigError(
            f"--seeds is invalid: expected a number of seeds such as 10, or a list such as "
            f"111,222,666, got {text[:40]!r}"
        )
    return list(map(int, words)) if "," in text else list(first_seeds(int(words[0])))


def number_of_jobs(jobs: int | None, threads: int) -> int:
    """Return the jobs asked for, or as many as there are cores for."""
    return jobs or max(1, num_cores() // threads)


def num_cores() -> int:
    """Count the CPU cores that this process may use."""
    # Only Linux tells which ones; elsewhere all are taken to be.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_duration(text: str) -> float:
    """Read a time such as 90s, 55m, 12h or 11:30:00 in seconds."""
    units = {"s": 1, "m": 60, "h": 3600}
    if one := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smh])", text, re.ASCII):
        seconds = float(one[1]) * units[one[2]]
    elif one := re.fullmatch(r"(\d{1,6}):([0-5]\d):([0-5]\d)", text, re.ASCII):
        hours, minutes, rest = map(int, one.groups())
        seconds = float(3600 * hours + 60 * minutes + rest)
    else:
        seconds = 0.0
    if not seconds:
        raise ConfigError(
            f"a time is invalid: expected one such as 90s, 55m, 12h or 11:30:00, got {text[:40]!r}"
        )
    return seconds


def published_folder(*, ignore: bool) -> Path | None:
    """Return where published trials are looked for; nowhere if they are to be ignored."""
    return None if ignore else evidence_folder()


def print_json(content: object) -> None:
    """Print plain values for a script."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def warn(text: str) -> None:
    """Print a warning to standard error."""
    typer.echo(f"pernn: {text}", err=True)
