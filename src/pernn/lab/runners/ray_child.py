"""A process that drives Ray: trials come in, events go out.

It ends after the order to stop, or when its input does: running trials are then checkpointed.
"""

import math
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from pernn.errors import MachineError, PernnError
from pernn.lab.runs import SINKS_VARIABLE
from pernn.lab.store import read_update, storing

from .ray import DIED, NOT_BEGUN, describe_code
from .runner import SIGNALS, STOP, TrialEvent, deferred_interrupt, run_request
from .worker import LOG, Requests, serve

WAIT_SECONDS, LOOK_SECONDS, WATCH_SECONDS = 0.2, 2.0, 0.5
NUM_LOOKS = 10
MAX_WATCHED = 50
"""Trials whose files are read at a time."""
NO_NODE_SECONDS = 60.0
"""Time for which a cluster may have no node for a trial, for example while one starts."""


def task(mark: str, code: Mapping[str, Any], request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a trial on a node, which checkpoints when cancelled.

    Returns:
        What it had to mend, and how it ended; nothing if it was cancelled before it began.
    """
    interrupted, events = threading.Event(), list[TrialEvent]()
    with deferred_interrupt(interrupted):
        # The driver's process, which imports this file too, has no use for torch.
        from pernn.lab.training import keep_freed_memory

        keep_freed_memory()
        require_same(Path(mark), code)
        log = Path(request["root"]) / LOG
        with storing(log), log.open("a", buffering=1) as file, redirect_stderr(file):
            if not interrupted.is_set():
                end = run_request(request, events.append, lambda: not interrupted.is_set())
                events = [*filter(lambda event: event.is_warning, events), end]
    return [asdict(event) for event in events]


def require_same(mark: Path, code: Mapping[str, Any]) -> None:
    """Refuse a machine with another directory or other code."""
    here = platform.node()
    for _ in range(NUM_LOOKS):
        if mark.exists():
            break
        time.sleep(WAIT_SECONDS)
    else:
        raise MachineError(
            f"{here} does not see {mark}: the results directory must lie on a file system that "
            "all machines of the cluster share, under the same path"
        )
    ours = describe_code()
    for name, wanted in code.items():
        if ours.get(name) != wanted:
            raise MachineError(
                f"{here} has {name} {ours.get(name)} where the driver has {wanted}: install the "
                "same on all machines of the cluster"
            )


class Tasks:
    """The tasks of one sweep."""

    def __init__(self, settings: Mapping[str, Any], tell: Callable[[TrialEvent], None]) -> None:
        self.settings, self.tell = settings, tell
        self.tasks: dict[ray.ObjectRef[Any], Mapping[str, Any]] = {}
        self.updates: dict[str, int] = {}
        self.first = 0
        self.is_local = settings["address"] == "local"
        self.looked = self.last_node = self.watched = time.monotonic()
        self._connect()

    def _connect(self) -> None:
        """Join the cluster, or start one that ends with this process."""
        settings = self.settings
        own: dict[str, Any] = {
            "num_cpus": math.ceil(settings["num_cpus"]) or None,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
        variables = {"OMP_NUM_THREADS": str(settings["threads"])}
        if "PERNN_DATA" in os.environ:
            variables["PERNN_DATA"] = str(Path(os.environ["PERNN_DATA"]).resolve())
        variables |= {key: os.environ[key] for key in (SINKS_VARIABLE,) if key in os.environ}
        try:
            ray.init(
                address=settings["address"],
                log_to_driver=False,
                runtime_env={"env_vars": variables},
                **(own if self.is_local else {}),
            )
        except Exception as error:
            # Ray raises what it likes, plain `Exception` among it.
            raise LookupError(f"Ray does not start: {_first_line(error)}") from error
        # The parent counts deaths and sends such trials again.
        self.remote = ray.remote(task).options(
            num_cpus=settings["cpus"],
            num_gpus=settings["gpus"],
            max_retries=0,
            scheduling_strategy="SPREAD",
        )

    def run(self, requests: Requests) -> None:
        """Run what is asked for until the last task is over."""
        stopping = False
        while self.tasks or not stopping:
            while not requests.empty():
                request = requests.get()
                if request == STOP:
                    # A second cancellation would not wait for the checkpoint.
                    for reference in () if stopping else self.tasks:
                        ray.cancel(reference, force=False)
                    stopping = True
                elif not stopping:
                    code = self.settings["code"]
                    reference = self.remote.remote(self.settings["mark"], code, request)
                    self.tasks[reference] = request
            if not stopping:
                self._check_nodes()
            over, _ = ray.wait(list(self.tasks), timeout=WAIT_SECONDS) if self.tasks else ([], [])
            for reference in over:
                self._end(reference, self.tasks.pop(reference)["run"], stopping=stopping)
            self._tell_progress()
            if not self.tasks:
                time.sleep(WAIT_SECONDS)

    def _tell_progress(self) -> None:
        """Read the files of running trials, of some at a time if there are many."""
        if time.monotonic() - self.watched < WATCH_SECONDS:
            return
        self.watched, running = time.monotonic(), [*self.tasks.values()]
        first, self.first = self.first % max(1, len(running)), self.first + MAX_WATCHED
        for request in (running[first:] + running[:first])[:MAX_WATCHED]:
            run, root = request["run"], Path(request["root"])
            done = sum(read_update(root, stage) for stage in request["stages"])
            update = min(done, request["num_updates"])
            if update > self.updates.get(run, 0):
                self.updates[run] = update
                self.tell(TrialEvent("running", run, update))

    def _end(self, reference: "ray.ObjectRef[Any]", run: str, *, stopping: bool) -> None:
        """Tell how a task ended; raise LookupError if not its trial failed but its machine."""
        try:
            events = [TrialEvent(**event) for event in ray.get(reference)]
        except RayTaskError as error:
            if not stopping:
                # It would fail the others, too.
                raise LookupError(_first_line(error.cause)) from None
            events = []
        except TaskCancelledError:
            events = []
        except RayError as error:
            reason = f"with {type(error).__name__}: {_first_line(error)}"
            events = [TrialEvent("failed", run, message=reason, error=DIED)]
        for event in events or [TrialEvent("stopped", run, error=NOT_BEGUN)]:
            self.tell(event)

    def _check_nodes(self) -> None:
        """Find out whether any node has what a trial needs."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        cpus, gpus = self.settings["cpus"], self.settings["gpus"]
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(one.get("CPU", 0) >= cpus and one.get("GPU", 0) >= gpus for one in nodes):
            self.last_node = now
        elif now - self.last_node >= (0 if self.is_local else NO_NODE_SECONDS):
            found = ", ".join(
                f"{one.get('CPU', 0):g} CPU and {one.get('GPU', 0):g} GPU" for one in nodes
            )
            raise LookupError(
                f"no node of the Ray cluster has {cpus:g} CPU and {gpus:g} GPU for a trial "
                f"(nodes: {found or 'none'})"
            )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def main() -> None:
    """Serve the runner that started this process."""
    say, requests = serve()

    def tell(event: TrialEvent) -> None:
        say(asdict(event))

    try:
        tasks = Tasks(requests.get(), tell)
        for number in SIGNALS:
            # Ray's own handlers would end the tasks at once.
            signal.signal(number, lambda *_: requests.put(STOP))
        tell(TrialEvent("running", "", message="connected"))
        try:
            tasks.run(requests)
        except LookupError:
            requests.put(STOP)
            tasks.run(requests)
            raise
    except (LookupError, ConnectionError, ValueError, RuntimeError, PernnError) as error:
        tell(TrialEvent("failed", "", message=_first_line(error)))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
