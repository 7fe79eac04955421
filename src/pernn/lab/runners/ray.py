"""Trials as tasks of a Ray cluster.

Ray ends the process whose cluster is lost, takes over signals and prints what it likes. So it gets
a child process (`ray_child`), which takes one trial a line as every worker does, and holds as many
at a time as the cluster.
"""

import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from queue import Empty

from pernn.errors import ConfigError, MachineError, counted, install_command
from pernn.lab.runs import RunSpec, describe_commit, describe_versions
from pernn.lab.store import make_directory, read_update, refuse_links, storing

from .runner import POLL_SECONDS, STOP, Limits, OnEvent, TrialEvent, make_request, require_counts
from .schedule import Schedule, drive
from .worker import LOG, Events, spawn

REACH_SECONDS, CONNECT_SECONDS, CLOSE_SECONDS = 5.0, 90.0, 30.0
MAX_QUEUED = 1000
"""Tasks that wait in Ray's queue or run, unless there is a limit of jobs."""
DIED, NOT_BEGUN = "WorkerDied", "NotBegun"
"""Errors of events that are no end of an attempt, but the loss of one or of its place."""
PACKAGES = ("pernn", "torch", "numpy")
"""What decides a trial's bits."""


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
        gpus = self.gpus_per_trial
        if not 0 <= gpus <= 1:
            raise ConfigError(f"GPUs per trial are invalid: expected 0 to 1, got {gpus:g}")
        if self.device not in ("auto", "cuda" if gpus else "cpu"):
            raise ConfigError(
                f"--device {self.device} is incompatible with --gpus-per-trial {gpus:g}: expected "
                f"auto or {'cuda' if gpus else 'cpu'}, as the cluster chooses the GPU"
            )

    def describe(self) -> str:
        """Return where trials run."""
        number = "as many as there is room for" if self.jobs is None else str(self.jobs)
        return (
            f"{number} at a time on Ray ({self.address}), {counted(self.threads, 'thread')} and "
            f"{self.gpus_per_trial:g} GPU each"
        )

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end, or to a limit.

        Raises:
            MachineError: If Ray is missing, the cluster cannot be reached or is lost, or its
                machines do not share the results directory or run other code.
            StoreError: If the results directory cannot be written.
            KeyboardInterrupt: After a signal, when every running trial is checkpointed.
        """
        require_ray()
        if self.address not in ("auto", "local"):
            _reach(self.address)
        root = root.resolve()
        # A machine that sees this file shares the results directory.
        mark = root / "drivers" / secrets.token_hex(8)
        refuse_links(mark.parent)
        with storing(mark):
            make_directory(mark.parent)
            mark.touch()
        try:
            schedule = Schedule(specs, root, self.limits, on_event)
            engine = _Cluster(self, schedule, mark)
            try:
                drive(engine, schedule)
            finally:
                engine.child.close(CLOSE_SECONDS if engine.is_connected else 0.0)
        finally:
            mark.unlink(missing_ok=True)


class _Cluster:
    """The child that drives Ray, seen from its parent."""

    def __init__(self, runner: RayRunner, schedule: Schedule, mark: Path) -> None:
        self.runner, self.schedule, self.events = runner, schedule, Events()
        self.is_connected, self.deadline = False, time.monotonic() + CONNECT_SECONDS
        self.turn = 0
        self.child = spawn("ray_child", schedule.root, self.events, environment(runner.address))
        self.child.send(
            {
                "address": runner.address,
                "cpus": runner.threads,
                "gpus": runner.gpus_per_trial,
                "jobs": runner.jobs,
                "mark": str(mark),
                "code": describe_code(),
            }
        )

    def has_room(self) -> bool:
        """Return whether another task may start under the user's limit."""
        return len(self.schedule.running) < (self.runner.jobs or MAX_QUEUED)

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Send a trial to the cluster."""
        gpus = self.runner.gpus_per_trial
        how = {"device": "cuda" if gpus else "cpu", "threads": self.runner.threads}
        share = gpus or 1.0
        request = make_request(spec, self.schedule.root, expired=expired, gpu_share=share, **how)
        self.child.send(request)

    def look(self) -> None:
        """Take the next event, if it comes before limits are due."""
        try:
            _, event = self.events.get(timeout=POLL_SECONDS)
        except Empty:
            if not self.is_connected and time.monotonic() > self.deadline:
                raise self._lost() from None
            self._tell_progress()
            return
        if event is None:
            raise self._lost()
        if not event.run and event.state == "failed":
            is_known = self.is_connected or self.runner.address == "local"
            raise MachineError(event.message) if is_known else self._lost(f" ({event.message})")
        if not event.run:
            self.is_connected = True
        elif event.error == DIED:
            self.schedule.fail(event.run, event.message)
        elif event.error == NOT_BEGUN:
            self.schedule.requeue([self.schedule.running.pop(event.run)])
        elif event.is_end or event.elsewhere:
            self.schedule.end(event)
        else:
            self.schedule.on_event(event)

    def _tell_progress(self) -> None:
        """Read the files of one running trial, another one every time.

        Of a thousand that wait, those in front run: it begins anew where one has not begun.
        """
        if running := list(self.schedule.running.items()):
            run, spec = running[self.turn % len(running)]
            done = sum(read_update(self.schedule.root, s.fingerprint()) for s in spec.stages)
            # The first alone may be slow to begin.
            self.turn = self.turn + 1 if done or not self.turn else 0
            if done:
                self.schedule.on_event(TrialEvent("running", run, min(done, spec.num_updates)))

    def stop(self) -> None:
        """Have running trials checkpoint, and drop the tasks that have not begun."""
        self.child.send(STOP)

    def _lost(self, reason: str = "") -> MachineError:
        log = f"see {LOG} in the results directory"
        if self.is_connected:
            return MachineError(
                "the Ray cluster is lost; what was finished and checkpointed is kept: "
                f"{log}, then run the same command again"
            )
        return MachineError(
            f"no Ray cluster answers at {self.runner.address}{reason}: is it one, of the same "
            "version; does this machine belong to it and have its token, in ~/.ray/auth_token or "
            f"RAY_AUTH_TOKEN? For Ray's own words {log}"
        )


def describe_code() -> dict[str, str | None]:
    """Name the code that computes here."""
    commit = describe_commit()
    # Whether a checkout is changed may itself change while a sweep runs.
    return {**describe_versions(PACKAGES), "commit": commit and commit.removesuffix("-dirty")}


def require_ray() -> None:
    """Refuse a machine without Ray."""
    if find_spec("ray") is None:
        raise MachineError(f"the package ray is missing: {install_command('ray')}")


def _reach(address: str) -> None:
    """Find out soon whether anything listens there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise MachineError(
            f"no Ray cluster at {address} ({getattr(error, 'strerror', '') or error}): expected "
            "HOST:PORT; start one with `ray start --head`, or use --address local"
        ) from None


def environment(address: str) -> dict[str, str]:
    """Return the environment that Ray needs before its import."""
    found = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_SCHEDULER_EVENTS": "0",
        # Without it, a task that was killed for its memory is repeated for ever, uncounted.
        "RAY_task_oom_retries": "0",
    }
    has_token = bool(os.environ.get("RAY_AUTH_TOKEN"))
    # There may be no home directory.
    with suppress(RuntimeError):
        token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
        has_token |= token.is_file()
    if address != "local" and "RAY_AUTH_MODE" not in os.environ and has_token:
        # `ray start` takes a token that is there, `ray.init(HOST:PORT)` does not; where a cluster
        # asks for none it does no harm.
        found["RAY_AUTH_MODE"] = "token"
    if address == "local" or address.rpartition(":")[0] in ("localhost", "127.0.0.1"):
        # Else Ray puts the network card's address for it, at which nothing listens.
        found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return found
