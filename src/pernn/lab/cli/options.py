"""Options that verbs share, their values read and checked, and exit statuses."""

import json
import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from pernn import errors
from pernn.errors import ConfigError, MachineError, StoreError, counted
from pernn.lab.config import grouped, parse_assignment
from pernn.lab.experiments import ADDED, TUNED, first_seeds
from pernn.lab.runners import Limits, LocalRunner, RayRunner, TrialEvent, num_cores, require_ray
from pernn.lab.runs import SINKS, RunSpec, choose_sinks

if TYPE_CHECKING:
    from pernn.lab.runners import InlineRunner

RESULTS = Path("results")
Results = Annotated[
    Path, Option("--results", "-r", envvar="PERNN_RESULTS", help="Results directory.")
]
IgnorePublished = Annotated[
    bool, Option(help="Do not count published trials (in `evidence`, or PERNN_EVIDENCE) as done.")
]
SWEEP = Argument(
    help="A sweep (see `pernn status`), an experiment, or `train` for those of `pernn train`."
)
Json = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Yes = Annotated[bool, Option("--yes", "-y")]
Scale = Annotated[str, Option("--scale", "-s", help="demo, small or paper.")]
Assignments = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a value in every spec, e.g. core.hidden_size=256; may be repeated. For an "
        "experiment, a list makes a grid: 'task.vocab_size=[16,64]'.",
    ),
]
Seeds = Annotated[
    str | None,
    Option(
        metavar="N|SEED,SEED",
        help="How many seeds (the published ones first: 111, 222 …), or which.",
    ),
]
Additions = Annotated[
    list[str] | None,
    Option(
        "--add",
        metavar="PATH=VALUE",
        help="Add a value to the experiment's own in the grid, e.g. "
        "core.kind=mymodule:MinGRUConfig; may be repeated.",
    ),
]
Jobs = Annotated[int | None, Option("--jobs", "-j", min=1)]
Threads = Annotated[int, Option(min=1, help="CPU threads of each trial.")]
Device = Annotated[str, Option(help="auto (CUDA if there is any, else CPU), cpu, cuda, cuda:1 …")]


RUNNERS_OF = {
    "jobs": ("local", "ray"),
    "force": ("local", "inline"),
    "oversubscribe": ("local", "inline"),
    "address": ("ray",),
    "gpus_per_trial": ("ray",),
}
"""Option → the runners that it applies to; the others apply to all."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Settings of how trials run, each of them an option.

    Attributes:
        jobs: Trials at a time; the default is one per CPU core.
        threads: CPU threads of each.
        device: Where they compute.
        time_limit: Stop cleanly after this wall-clock time: 90s, 55m, 3h50m or 11:30:00. A tenth
            of it, at most a minute, is kept for checkpoints.
        max_trials: Stop after N trials finish.
        force: Skip the estimate: of time, disk, memory.
        yes: Do not ask before more than a day of work.
        oversubscribe: Allow more jobs × threads than CPU cores.
        ignore_published: Run published trials, too.
        log_to: Show training there, too, below RESULTS/logs; may be repeated (or PERNN_LOG_TO).
        runner: Where trials run: processes here, this process or a Ray cluster.
        address: Ray: HOST:PORT, auto (the default: the cluster of this machine), local.
        gpus_per_trial: Ray: 0, 1 or a fraction.
        begun: When the command began: a time limit holds for all its sweeps together.
    """

    jobs: Jobs = None
    threads: Threads = 1
    device: Device = "auto"
    time_limit: Annotated[str | None, Option(metavar="TIME")] = None
    max_trials: Annotated[int | None, Option(min=1)] = None
    force: bool = False
    yes: Yes = False
    oversubscribe: bool = False
    ignore_published: IgnorePublished = False
    log_to: Annotated[list[str] | None, Option(metavar="|".join(SINKS))] = None
    runner: Literal["local", "inline", "ray"] = "local"
    address: str | None = None
    gpus_per_trial: float | None = None
    begun: float = field(default_factory=time.monotonic, init=False)

    @property
    def is_here(self) -> bool:
        """True if trials run on this machine."""
        return self.runner != "ray"

    @property
    def jobs_here(self) -> int:
        """Number of trials at a time, if they run on this machine."""
        at_most = max(1, num_cores() // self.threads)
        return 1 if self.runner == "inline" else self.jobs or at_most

    def check_machine(self, specs: Sequence[RunSpec]) -> None:
        """Refuse what this machine lacks, before anything is measured or announced."""
        if not self.is_here:
            require_ray()
            return
        if self.device not in ("auto", "cpu"):
            # It loads torch.
            from pernn.lab.training import choose_device

            choose_device(self.device)
        tasks = (stage.task_under_preset for spec in specs for stage in spec.stages)
        for task in {one.fingerprint(): one for one in tasks}.values():
            task.check_data()

    def make_runner(self) -> "LocalRunner | InlineRunner | RayRunner":
        """Make what runs the trials, and refuse options that do not apply."""
        for name, runners in RUNNERS_OF.items():
            value = getattr(self, name)
            if value is not None and value is not False and self.runner not in runners:
                option, users = f"--{name.replace('_', '-')}", " or ".join(runners)
                raise ConfigError(f"{option} applies only to --runner {users}, not {self.runner}")
        choose_sinks(self.log_to)
        needed, cores = self.jobs_here * self.threads, num_cores()
        if self.is_here and not self.oversubscribe and needed > cores:
            raise ConfigError(
                f"--jobs {self.jobs_here} of {counted(self.threads, 'thread')} need {needed} "
                f"cores, and this process may use {cores}: use fewer, or --oversubscribe"
            )
        seconds = None if self.time_limit is None else read_duration(self.time_limit)
        where: dict[str, Any] = {"device": self.device, "threads": self.threads}
        where["limits"] = Limits(seconds, self.max_trials, begun=self.begun)
        if self.runner == "local":
            return LocalRunner(jobs=self.jobs_here, **where)
        if self.runner == "inline":
            # The only one that computes in this process, and so loads torch into it.
            from pernn.lab.runners import InlineRunner

            return InlineRunner(**where)
        gpus = self.gpus_per_trial or 0.0
        return RayRunner(self.address or "auto", self.jobs, gpus_per_trial=gpus, **where)


def overrides(assignments: list[str] | None) -> dict[str, Any]:
    """Read the values of `--set`."""
    found: dict[str, Any] = {}
    for path, value in (parse_assignment(text) for text in assignments or []):
        if path in found:
            raise ConfigError(
                f"--set {path} stands twice: give one value, or for a grid a list, {path}=[…]"
            )
        found[path] = value
    return found


def grid_changes(
    assignments: list[str] | None,
    seeds: str | None,
    additions: list[str] | None,
    tuned: str | None = None,
) -> dict[str, Any]:
    """Read what `--set`, `--seeds`, `--add` and `--tune` change in an experiment's grid."""
    changes = overrides(assignments)
    if seeds is not None:
        if "seed" in changes:
            raise ConfigError("--seeds and --set seed=… are the same: give one of them")
        changes["seed"] = _read_seeds(seeds)
    if tuned is not None:
        path, grid = parse_assignment(tuned, "--tune")
        changes[f"{TUNED}{path}"] = grid
    pairs = (parse_assignment(text, "--add") for text in additions or [])
    added = grouped((f"{ADDED}{path}", value) for path, value in pairs)
    return changes | {k: some if len(some) > 1 else some[0] for k, some in added.items()}


def _read_seeds(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(re.fullmatch(r"\d{1,20}", word, re.ASCII) for word in words):
        raise ConfigError(
            f"--seeds is invalid: expected a number of seeds such as 10, or a list such as "
            f"111,222,666, got {text[:40]!r}"
        )
    return list(map(int, words)) if "," in text else list(first_seeds(int(words[0])))


def read_duration(text: str) -> float:
    """Read a time such as 90s, 55m, 3h50m or 11:30:00 in seconds."""
    parts = [rf"(?:(\d{{1,9}}(?:\.\d{{1,9}})?){unit})?" for unit in "hms"]
    one = re.fullmatch("".join(parts), text, re.ASCII) or re.fullmatch(
        r"(\d{1,6}):([0-5]\d):([0-5]\d)", text, re.ASCII
    )
    hours, minutes, rest = map(float, one.groups("0")) if one else (0.0, 0.0, 0.0)
    seconds = 3600 * hours + 60 * minutes + rest
    if not seconds:
        raise ConfigError(
            "a time is invalid: expected one such as 90s, 55m, 3h50m or 11:30:00, got "
            f"{text[:40]!r}"
        )
    return seconds


def print_json(content: object) -> None:
    """Print plain values for a script."""
    typer.echo(json.dumps(content, indent=2))


def warn(text: str) -> None:
    """Print a warning to standard error."""
    typer.echo(f"pernn: {text}", err=True)


LEFT_EARLY, INTERRUPTED = 5, 130
EXIT_STATUSES = {
    0: "everything is finished",
    1: "some trials failed; the others are kept",
    2: "the command, a spec or a value is invalid",
    3: "this machine lacks a device, an optional package, room or memory",
    4: "a results directory cannot be read or written",
    LEFT_EARLY: "stopped by a limit or a pause; `pernn resume` goes on",
    INTERRUPTED: "interrupted; everything is checkpointed, the same command goes on",
}


def exit_status(error: type[Exception]) -> int:
    """Return the exit status of an exception's class."""
    classes = {ConfigError: 2, MachineError: 3, StoreError: 4}
    return next((n for parent, n in classes.items() if issubclass(error, parent)), 1)


def failure_status(failures: Sequence[TrialEvent]) -> int:
    """Return the exit status of failed trials.

    That of their common reason, else 1, and 0 if none failed.
    """
    statuses = {exit_status(getattr(errors, one.error, Exception)) for one in failures}
    return statuses.pop() if len(statuses) == 1 else int(bool(failures))


def where(results: Path) -> str:
    """Return the option with which a further command finds these results."""
    usual = results == Path(os.environ.get("PERNN_RESULTS", RESULTS))
    return "" if usual else f" -r {shlex.quote(str(results))}"


def left_out(damage: Sequence[str]) -> int:
    """Print why runs were left out, and return the exit status."""
    for reason in damage:
        warn(f"left out: {reason}")
    return exit_status(StoreError) if damage else 0
