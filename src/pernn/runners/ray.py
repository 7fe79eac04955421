"""Trials as tasks of a Ray cluster, sent by a child process of this one.

Ray prints what it likes, takes over signals, waits minutes for a cluster that is not there and
ends the process whose cluster is lost. So it gets a process of its own (`ray_driver`), which can be
given up; what it prints goes to the log.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, cast

from pernn.errors import ConfigError, MachineError
from pernn.runs import RunSpec
from pernn.store import storing

from .dispatch import Ended, device_of_job, dispatch
from .jobs import JobFolder
from .leaving import Limits
from .runner import STOP, Hear, TrialEvent
from .slots import LOG

REACH_SECONDS, CONNECT_SECONDS, CLOSE_SECONDS = 5.0, 90.0, 30.0
WAIT_SECONDS = 0.5
BUSY_SECONDS = 10.0


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
        device_of_job(self.device, self.gpus_per_trial)
        if not 0 <= self.gpus_per_trial <= 1:
            raise ConfigError(f"a trial uses at most one GPU, got {self.gpus_per_trial:g}")
        if self.threads < 1 or (self.jobs is not None and self.jobs < 1):
            raise ConfigError(
                f"jobs and threads must be at least 1, got {self.jobs} and {self.threads}"
            )
        if self.cpus_per_trial is not None and not 0 < self.cpus_per_trial < float("inf"):
            raise ConfigError(f"CPUs per trial must be above 0, got {self.cpus_per_trial:g}")
        if self.address not in ("auto", "local"):
            host_and_port(self.address)

    def describe(self) -> str:
        """Say where trials run."""
        number = "as many as there is room for" if self.jobs is None else str(self.jobs)
        return (
            f"{number} at a time on Ray ({self.address}), {self.threads} thread(s) and "
            f"{self.gpus_per_trial:g} GPU each"
        )

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end.

        Raises:
            MachineError: If Ray is missing, the cluster cannot be reached or is lost, or its
                machines do not share the results directory or run other code.
            StoreError: If the results directory cannot be written.
        """
        if find_spec("ray") is None:
            raise MachineError("the package ray is missing: pip install 'pernn[ray]'")
        if self.address not in ("auto", "local"):
            _reach(self.address)
        folder = JobFolder(root)
        try:
            with _RayCluster(self, folder.root) as cluster:
                dispatch(
                    cluster,
                    specs,
                    folder,
                    hear,
                    device=device_of_job(self.device, self.gpus_per_trial),
                    threads=self.threads,
                    busy_seconds=BUSY_SECONDS,
                    limits=self.limits,
                )
        finally:
            folder.remove()


def host_and_port(address: str) -> tuple[str, int]:
    """Take an address apart.

    Raises:
        ConfigError: If it is not one.
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ConfigError(
            f"not the address of a Ray cluster: {address[:60]!r}: give HOST:PORT, auto or local"
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


class _RayCluster:
    """The child process that drives Ray.

    Args:
        runner: What was asked for.
        root: Results directory.
    """

    def __init__(self, runner: RayRunner, root: Path) -> None:
        self.runner = runner
        self.slots = 0
        self.unheard: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        options = {
            "address": runner.address,
            "jobs": runner.jobs,
            "cpus": runner.cpus_per_trial or runner.threads,
            "gpus": runner.gpus_per_trial,
            "threads": runner.threads,
        }
        with storing(root), (root / LOG).open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pernn.runners.ray_driver", json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **environment(runner.address)},
                # Ctrl-C is for this process, which tells the child.
                start_new_session=True,
            )
        # Both are pipes, asked for above.
        self.orders = cast(TextIOWrapper, self.process.stdin)
        lines = cast(TextIOWrapper, self.process.stdout)
        self.reader = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self.reader.start()

    def __enter__(self) -> "_RayCluster":
        try:
            self._connect()
        except BaseException:
            self.close(patience=0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close(patience=CLOSE_SECONDS)

    def _connect(self) -> None:
        deadline = time.monotonic() + CONNECT_SECONDS
        while not self.slots:
            if time.monotonic() > deadline:
                raise self._lost()
            self.ended()

    def close(self, patience: float) -> None:
        """Let the child leave the cluster, or end it."""
        with suppress(OSError):
            self.orders.close()
        try:
            self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()

    def room(self) -> int:
        """Keep as many tasks waiting over there as can run, so that no slot is ever idle."""
        return self.runner.jobs or 2 * self.slots

    def send(self, orders: Sequence[Mapping[str, Any]]) -> None:
        """Have tasks begun."""
        for order in orders:
            self._order(order)

    def stop(self) -> None:
        """Have running trials checkpointed."""
        self._order(STOP)

    def ended(self) -> Sequence[Ended]:
        """Give what is over.

        Raises:
            MachineError: If the cluster refuses or is lost.
        """
        try:
            line = self.unheard.get(timeout=WAIT_SECONDS)
        except Empty:
            return []
        if line is None:
            raise self._lost()
        if "error" in line:
            raise MachineError(line["error"])
        if "slots" in line:
            self.slots = line["slots"]
            return []
        return [Ended(line["job"], [TrialEvent(**end) for end in line["ends"]], line["reason"])]

    def _lost(self) -> MachineError:
        if not self.slots:
            return MachineError(
                f"no Ray cluster answers at {self.runner.address}: is it one, of the same version, "
                f"and does this machine belong to it? See {LOG} in the results directory"
            )
        return MachineError(
            "the Ray cluster is lost; what was finished and checkpointed is kept: "
            f"see {LOG} in the results directory, then run the same command again"
        )

    def _order(self, content: Mapping[str, Any]) -> None:
        """Send a line; a child that just died is noticed by its reader instead."""
        with suppress(OSError):
            self.orders.write(json.dumps(content) + "\n")
            self.orders.flush()

    def _read(self, lines: TextIOWrapper) -> None:
        for line in lines:
            with suppress(ValueError):
                self.unheard.put(json.loads(line))
        lines.close()
        self.unheard.put(None)


def environment(address: str) -> dict[str, str]:
    """Give what Ray has to find in its environment before it is imported."""
    found = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SCHEDULER_EVENTS": "0"}
    host = "127.0.0.1" if address == "local" else address.rpartition(":")[0]
    if host in ("localhost", "127.0.0.1"):
        # Else Ray puts the network card's address for it, at which nothing listens.
        found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return found
