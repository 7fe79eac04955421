"""Trials as tasks of a Ray cluster.

Ray ends the process whose cluster is lost, takes over signals and prints what it likes. So it gets
a child process (`ray_child`), which runs the schedule, and to which this one passes orders to stop.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from queue import Empty
from tempfile import NamedTemporaryFile
from threading import Event

from pernn.errors import ConfigError, MachineError, counted, install_command
from pernn.lab.runs import RunSpec, describe_commit, describe_versions
from pernn.lab.store import storing

from .schedule import (
    POLL_SECONDS,
    STOP,
    Limits,
    OnEvent,
    deferred_interrupt,
    require_counts,
)
from .worker import LOG, Child, Events, spawn

CLOSE_SECONDS = 30.0


@dataclass(frozen=True)
class RayRunner:
    """A runner on a Ray cluster, which repeats trials of dead nodes.

    A trial with a fraction of a GPU gets that fraction of its memory, which PyTorch enforces.

    Attributes:
        address: `HOST:PORT` of a cluster to which this machine belongs, `auto` for the one that
            runs here or that RAY_ADDRESS names, `local` for one of its own, which ends with it.
        jobs: Trials at a time; as many as the cluster has room for if absent.
        device: `auto`, `cpu` or `cuda`; Ray chooses which.
        threads: CPU threads of each trial, which takes up as many CPUs.
        gpus_per_trial: GPUs that a trial takes up: 0, 1 or a fraction.
        limits: When to leave before all is done.

    Raises:
        ConfigError: If these contradict each other.
    """

    address: str = "auto"
    jobs: int | None = None
    device: str = "auto"
    threads: int = 1
    gpus_per_trial: float = 0.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        require_counts(jobs=self.jobs, threads=self.threads)
        gpus, device = self.gpus_per_trial, "cuda" if self.gpus_per_trial else "cpu"
        if not 0 <= gpus <= 1:
            raise ConfigError(f"GPUs per trial are invalid: expected 0 to 1, got {gpus:g}")
        if self.device not in ("auto", device):
            raise ConfigError(
                f"--device {self.device} is incompatible with --gpus-per-trial {gpus:g}: expected "
                f"auto or {device}, as the cluster chooses the GPU"
            )

    def describe(self) -> str:
        """Return where trials run."""
        share = f"{counted(self.threads, 'thread')} and {self.gpus_per_trial:g} GPU each"
        return f"{self.jobs or 'as many as fit'} at a time on Ray ({self.address}), {share}"

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end, or to a limit.

        Raises:
            MachineError: If Ray is missing, the cluster cannot be reached or is lost, or its
                machines do not share the results directory or run other code.
            StoreError: If the results directory cannot be written.
            KeyboardInterrupt: After a signal, when every running trial is checkpointed.
        """
        require_ray()
        root, events, interrupted = root.resolve(), Events(), Event()
        # Without it, a task that was killed for its memory is repeated for ever, uncounted.
        environment = {"RAY_task_oom_retries": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        if self.address == "local":
            # It listens on loopback only.
            environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
            # A machine that sees this file shares the results directory.
            mark = NamedTemporaryFile(dir=root, prefix=".", suffix=".partial")  # noqa: SIM115
        with mark, deferred_interrupt(interrupted):
            child = spawn("ray_child", root, events, environment)
            settings = {
                "address": self.address,
                "jobs": self.jobs,
                "cpus": self.threads,
                "gpus": self.gpus_per_trial,
                "max_trials": self.limits.trials,
                "root": str(root),
                "mark": mark.name,
                "code": describe_code(),
                "specs": [spec.dump() for spec in specs],
            }
            child.send(settings)
            try:
                problem = self._follow(child, events, on_event, interrupted)
            finally:
                child.close(CLOSE_SECONDS)
        if problem:
            raise MachineError(
                f"Ray ({self.address}): {problem}; what was checkpointed is kept, {LOG} in the "
                "results directory tells more, and the same command goes on"
            )
        if interrupted.is_set():
            raise KeyboardInterrupt

    def _follow(self, child: Child, events: Events, on_event: OnEvent, interrupted: Event) -> str:
        """Pass on events, and return why the child could not go on."""
        stopping = False
        while True:
            if not stopping and (interrupted.is_set() or self.limits.reached()):
                child.send(STOP)
                stopping = True
            with suppress(Empty):
                _, event = events.get(timeout=POLL_SECONDS)
                if event is None:
                    return "no cluster answers, or it is lost"
                if not event.run:
                    return "" if stopping else event.message
                self.limits.count(event)
                on_event(event)


def describe_code() -> str:
    """Name the code that computes here."""
    # Whether a checkout is changed may itself change while a sweep runs.
    commit = (describe_commit() or "none").removesuffix("-dirty")
    versions = {**describe_versions(("pernn", "torch", "numpy")), "commit": commit}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def require_ray() -> None:
    """Refuse a machine without Ray."""
    if find_spec("ray") is None:
        raise MachineError(f"the package ray is missing: {install_command('ray')}")
