"""How the trials of a sweep are run: the options of `run`, `resume` and `retry`, declared once."""

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Annotated, Any, Literal, get_type_hints

import typer

from pernn.errors import ConfigError, counted
from pernn.runners import Limits, LocalRunner, RayRunner, Runner
from pernn.runs import SINKS, choose_sinks

from .options import (
    Device,
    IgnorePublished,
    Jobs,
    Threads,
    num_cores,
    number_of_jobs,
    read_duration,
)

RUNNERS_OF = {
    "jobs": ("local", "ray"),
    "force": ("local", "inline"),
    "oversubscribe": ("local", "inline"),
    "address": ("ray",),
    "cpus_per_trial": ("ray",),
    "gpus_per_trial": ("ray",),
}
"""Option → the runners that it applies to; the others apply to all."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How trials are to be run; every field is an option, with its help."""

    jobs: Jobs = None
    threads: Threads = 1
    device: Device = "auto"
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            metavar="TIME",
            help="Stop cleanly after this wall-clock time: 90s, 55m, 12h or 11:30:00. "
            "A tenth of it, at most a minute, is kept for checkpoints.",
        ),
    ] = None
    max_trials: Annotated[
        int | None, typer.Option("--max-trials", min=1, help="Stop after N trials finish.")
    ] = None
    order: Annotated[
        Literal["seed", "grid"],
        typer.Option(
            "--order",
            help="seed: one seed of every cell first, so that early reports cover the grid; "
            "grid: cell by cell.",
        ),
    ] = "seed"
    force: Annotated[
        bool, typer.Option("--force", help="Skip the estimate: of time, disk, memory.")
    ] = False
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before more than a day of work.")
    ] = False
    oversubscribe: Annotated[
        bool, typer.Option("--oversubscribe", help="Allow more jobs × threads than CPU cores.")
    ] = False
    ignore_published: IgnorePublished = False
    log_to: Annotated[
        list[str] | None,
        typer.Option(
            "--log-to",
            metavar="|".join(SINKS),
            help="Show training there, too, below RESULTS/logs; may be repeated (or PERNN_LOG_TO).",
        ),
    ] = None
    runner: Annotated[
        Literal["local", "inline", "ray"],
        typer.Option(
            "--runner",
            help="Where trials run: processes here, this process or a Ray cluster.",
        ),
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="Ray: HOST:PORT, auto (the default: the cluster of this machine), local.",
        ),
    ] = None
    cpus_per_trial: Annotated[
        float | None,
        typer.Option("--cpus-per-trial", help="Ray: the default is one per thread."),
    ] = None
    gpus_per_trial: Annotated[
        float | None,
        typer.Option("--gpus-per-trial", help="Ray: 0, 1 or a fraction."),
    ] = None
    begun: float = field(default_factory=time.monotonic, init=False)
    """When the command began: a time limit holds for all its sweeps together."""

    def limits(self, paused: Callable[[], bool] = lambda: False) -> Limits:
        """Start to count what limits the work."""
        seconds = None if self.time_limit is None else read_duration(self.time_limit)
        return Limits(seconds, self.max_trials, paused, self.begun)

    @property
    def is_here(self) -> bool:
        """Whether trials run on this machine."""
        return self.runner in ("local", "inline")

    @property
    def jobs_here(self) -> int:
        """Number of trials at a time, if they run on this machine."""
        return 1 if self.runner == "inline" else number_of_jobs(self.jobs, self.threads)

    def make_runner(self, limits: Limits) -> Runner:
        """Make what runs the trials; refuse options that do not apply to it, or cannot be had."""
        for name, runners in RUNNERS_OF.items():
            value = getattr(self, name)
            if value is not None and value is not False and self.runner not in runners:
                option = f"--{name.replace('_', '-')}"
                users = " or ".join(runners)
                raise ConfigError(f"{option} applies only to --runner {users}, not {self.runner}")
        choose_sinks(self.log_to)
        if self.is_here and not self.oversubscribe:
            check_cores(self.jobs_here, self.threads, num_cores())
        where: dict[str, Any] = {"device": self.device, "threads": self.threads, "limits": limits}
        if self.runner == "local":
            return LocalRunner(jobs=self.jobs_here, **where)
        if self.runner == "inline":
            # The only one that computes in this process, and so loads torch into it.
            from pernn.runners import InlineRunner

            return InlineRunner(**where)
        where |= {"jobs": self.jobs, "cpus_per_trial": self.cpus_per_trial}
        where["gpus_per_trial"] = self.gpus_per_trial or 0.0
        return RayRunner(address=self.address or "auto", **where)


def with_launch(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator: a verb gets options of `Launch`, all by default, as one `launch`."""
    return lambda verb: _with_options(verb, names)


def _with_options(verb: Callable[..., int], names: Sequence[str]) -> Callable[..., int]:
    hints = get_type_hints(Launch, include_extras=True)
    signature = inspect.signature(verb, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "launch"]
    options = [one for one in fields(Launch) if one.init and one.name in (names or hints)]
    added = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
        for one in options
    ]

    @wraps(verb)
    def call(**values: Any) -> int:
        launch = Launch(**{one.name: values.pop(one.name) for one in options})
        return verb(**values, launch=launch)

    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own] + added
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def check_cores(jobs: int, threads: int, cores: int) -> None:
    """Refuse trials that would take cores from one another."""
    if jobs * threads > cores:
        raise ConfigError(
            f"--jobs {jobs} of {counted(threads, 'thread')} need {jobs * threads} cores, and "
            f"this process may use {cores}: use fewer, or --oversubscribe"
        )
