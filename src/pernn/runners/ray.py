"""Trials as tasks of a Ray cluster, one each; Ray chooses where they run.

Ray ends the process whose cluster is lost, takes over signals and prints what it likes
(docs/decisions/0022). So it gets a child process (`ray_child`), which does all the work.
"""

import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from queue import Empty
from threading import Event
from typing import Any

from pernn.errors import ConfigError, MachineError, counted, install_command
from pernn.runs import RunSpec

from .cluster import DriverFolder, device_of_trial
from .runner import POLL_SECONDS, STOP, Limits, OnEvent, deferred_interrupt, require_counts
from .worker import LOG, Child, Events, spawn

REACH_SECONDS, CONNECT_SECONDS, CLOSE_SECONDS = 5.0, 90.0, 30.0
MAX_LOG = 2**20
"""Bytes of the log in which a reason is looked for."""


@dataclass(frozen=True)
class RayRunner:
    """Runs trials as tasks of a Ray cluster; those of a dead worker or node are taken up again.

    A fraction of a GPU shares it between trials; it does not limit the memory that each takes.

    Attributes:
        address: `HOST:PORT` of a cluster to which this machine belongs, `auto` for the one that
            runs here or that RAY_ADDRESS names, `local` for one of its own, which ends with it.
        jobs: Trials at a time; as many as the cluster has room for if absent.
        device: `auto`, `cpu` or `cuda`; Ray chooses which.
        threads: CPU threads of each trial.
        cpus_per_trial: CPUs that a trial takes up; as many as threads if absent.
        gpus_per_trial: GPUs that a trial takes up: 0, 1 or a fraction.
        limits: When to leave before all is done.

    Raises:
        ConfigError: If these contradict each other.
    """

    address: str = "auto"
    jobs: int | None = None
    device: str = "auto"
    threads: int = 1
    cpus_per_trial: float | None = None
    gpus_per_trial: float = 0.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        device_of_trial(self.device, self.gpus_per_trial)
        if not 0 <= self.gpus_per_trial <= 1:
            raise ConfigError(
                f"GPUs per trial are invalid: expected 0 to 1, got {self.gpus_per_trial:g}"
            )
        require_counts(jobs=self.jobs, threads=self.threads)
        if self.cpus_per_trial is not None and not 0 < self.cpus_per_trial < float("inf"):
            raise ConfigError(
                f"CPUs per trial are invalid: expected more than 0, got {self.cpus_per_trial:g}"
            )
        if self.address not in ("auto", "local"):
            host_and_port(self.address)

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
        folder, events, patience = DriverFolder(root), Events(), 0.0
        log = folder.root / LOG
        begun = log.stat().st_size if log.exists() else 0
        child = spawn("ray_child", folder.root, events, environment(self.address))
        try:
            child.order(self._order(specs, folder))
            self._relay(child, events, on_event, lambda: why_refused(log, begun))
            patience = CLOSE_SECONDS
        finally:
            child.close(patience)
            folder.remove()

    def _order(self, specs: Sequence[RunSpec], folder: DriverFolder) -> dict[str, Any]:
        return {
            "address": self.address,
            "jobs": self.jobs,
            "cpus": self.cpus_per_trial or self.threads,
            "gpus": self.gpus_per_trial,
            "device": device_of_trial(self.device, self.gpus_per_trial),
            "threads": self.threads,
            "max_trials": self.limits.trials,
            "root": str(folder.root),
            "folder": str(folder.path),
            "specs": [spec.dump() for spec in specs],
        }

    def _relay(
        self, child: Child, events: Events, on_event: OnEvent, reason: Callable[[], str]
    ) -> None:
        """Pass on what the child tells until it ends; have it stop when it is time to."""
        deadline, is_connected, is_told = time.monotonic() + CONNECT_SECONDS, False, False
        interrupted = Event()
        with deferred_interrupt(interrupted):
            while True:
                if not is_told and (interrupted.is_set() or self.limits.reached()):
                    child.order(STOP)
                    is_told = True
                try:
                    _, event = events.get(timeout=POLL_SECONDS)
                except Empty:
                    if not is_connected and time.monotonic() > deadline:
                        raise self._lost(was_connected=False, reason=reason()) from None
                    continue
                if event is None:
                    break
                if event.run:
                    self.limits.count(event)
                    on_event(event)
                elif event.state == "failed":
                    raise MachineError(event.message + ("" if is_connected else reason()))
                is_connected = True
        if child.close(CLOSE_SECONDS):
            raise self._lost(was_connected=is_connected, reason=reason())
        if interrupted.is_set():
            raise KeyboardInterrupt

    def _lost(self, *, was_connected: bool, reason: str) -> MachineError:
        if not was_connected:
            return MachineError(
                f"no Ray cluster answers at {self.address}: is it one, of the same version, "
                f"and does this machine belong to it? See {LOG} in the results directory{reason}"
            )
        return MachineError(
            "the Ray cluster is lost; what was finished and checkpointed is kept: "
            f"see {LOG} in the results directory, then run the same command again"
        )


def require_ray() -> None:
    """Refuse a machine without Ray."""
    if find_spec("ray") is None:
        raise MachineError(f"the package ray is missing: {install_command('ray')}")


def host_and_port(address: str) -> tuple[str, int]:
    """Split an address; raise ConfigError if it is not one."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ConfigError(
            f"--address is invalid: expected HOST:PORT, auto or local, got {address[:60]!r}"
        )
    return host, int(port)


def _reach(address: str) -> None:
    """Find out soon whether anything listens there."""
    try:
        socket.create_connection(host_and_port(address), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise MachineError(
            f"no Ray cluster at {address} ({error.strerror or error}): start one with "
            "`ray start --head`, or use --address local"
        ) from None


def why_refused(log: Path, begun: int) -> str:
    """Return what Ray logged of why nobody could connect, with the way out; it tells nobody else.

    Args:
        log: Where Ray's output goes.
        begun: Length of the log before.
    """
    with suppress(OSError), log.open("rb") as file:
        file.seek(begun)
        text = file.read(MAX_LOG).decode(errors="replace")
        if "InvalidAuthToken" in text:
            return (
                ": the cluster asks for a token, and this machine has none or another one: copy "
                "~/.ray/auth_token from the machine of `ray start --head`, or set RAY_AUTH_TOKEN"
            )
        if said := re.findall(r"\.cc:\d+: (.+)", text):
            return f": {said[-1]}"
    return ""


def has_token() -> bool:
    """Return whether this machine has a token for Ray's clusters."""
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or Path(path).is_file()


def environment(address: str) -> dict[str, str]:
    """Return what Ray has to find in its environment before it is imported."""
    found = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_SCHEDULER_EVENTS": "0",
        # Without it, a task that was killed for its memory is repeated for ever, uncounted.
        "RAY_task_oom_retries": "0",
    }
    if address != "local" and "RAY_AUTH_MODE" not in os.environ and has_token():
        # `ray start` takes a token that is there, `ray.init(HOST:PORT)` does not; where a cluster
        # asks for none it does no harm.
        found["RAY_AUTH_MODE"] = "token"
    host = "127.0.0.1" if address == "local" else address.rpartition(":")[0]
    if host in ("localhost", "127.0.0.1"):
        # Else Ray puts the network card's address for it, at which nothing listens.
        found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return found
