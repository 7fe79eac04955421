"""A process that runs a schedule on Ray and tells events.

It ends after the order to stop, or when its input does: running trials are then checkpointed.
"""

import os
import platform
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from pernn.errors import MachineError
from pernn.lab.runs import SINKS_VARIABLE, RunSpec
from pernn.lab.store import read_update

from .ray import describe_code
from .schedule import (
    POLL_SECONDS,
    Limits,
    Schedule,
    TrialEvent,
    deferred_interrupt,
    describe_error,
    drive,
    make_request,
    run_request,
)
from .worker import LOG, serve

CONNECT_SECONDS = 90
MAX_QUEUED = 1000
"""Tasks that wait in Ray's queue or run, unless there is a limit of jobs."""
NO_NODE_SECONDS = 60.0
"""Time for which a cluster may have no node for a trial, for example while one starts."""


def task(mark: str, code: str, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a trial on a node, which checkpoints when cancelled."""
    interrupted, events = threading.Event(), list[TrialEvent]()
    with deferred_interrupt(interrupted):
        # The driver's process, which imports this file too, has no use for torch.
        from pernn.lab.training import keep_freed_memory

        keep_freed_memory()
        require_same(Path(mark), code)
        with (Path(request["root"]) / LOG).open("a", buffering=1) as log, redirect_stderr(log):
            end = run_request(request, events.append, lambda: not interrupted.is_set())
    return [asdict(event) for event in (*filter(lambda event: event.is_warning, events), end)]


def require_same(mark: Path, code: str) -> None:
    """Refuse a machine with another directory or other code."""
    here, ours = platform.node(), describe_code()
    if not mark.exists():
        raise MachineError(
            f"{here} does not see {mark}: the results directory must lie on a file system that "
            "all machines of the cluster share, under the same path"
        )
    if ours != code:
        raise MachineError(
            f"{here} has {ours} where the driver has {code}: install the same on all machines"
        )


def connect(settings: Mapping[str, Any]) -> Any:
    """Return what starts a task on the cluster.

    One that is started for it (`local`) ends with this process.
    """
    cpus = settings["cpus"]
    variables = {"OMP_NUM_THREADS": str(cpus), SINKS_VARIABLE: os.environ.get(SINKS_VARIABLE, "")}
    if "PERNN_DATA" in os.environ:
        variables["PERNN_DATA"] = str(Path(os.environ["PERNN_DATA"]).resolve())
    # Where nothing answers Ray tries for many minutes; this ends the process.
    signal.alarm(CONNECT_SECONDS)
    ray.init(
        address=settings["address"],
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": variables},
    )
    signal.alarm(0)
    # The schedule counts deaths and starts such trials again.
    return ray.remote(task).options(
        num_cpus=cpus, num_gpus=settings["gpus"], max_retries=0, scheduling_strategy="SPREAD"
    )


class Cluster:
    """An engine of a schedule, whose trials are Ray's tasks."""

    def __init__(self, settings: Mapping[str, Any], schedule: Schedule) -> None:
        self.settings, self.schedule, self.remote = settings, schedule, connect(settings)
        self.tasks: dict[ray.ObjectRef[Any], str] = {}
        self.turn, self.last_node = 0, time.monotonic()

    def has_room(self) -> bool:
        """Return whether another task may start under the user's limit."""
        return len(self.tasks) < (self.settings["jobs"] or MAX_QUEUED)

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Queue a trial's task."""
        gpus, root = self.settings["gpus"], self.schedule.root
        how = {"device": "cuda" if gpus else "cpu", "threads": self.settings["cpus"]}
        request = make_request(spec, root, expired=expired, gpu_share=gpus or 1.0, **how)
        reference = self.remote.remote(self.settings["mark"], self.settings["code"], request)
        self.tasks[reference] = request["run"]

    def look(self) -> None:
        """Take the next task that is over, or read progress."""
        self._require_node()
        if not self.tasks:
            # Other drivers run all that waits.
            time.sleep(POLL_SECONDS)
        over, _ = ray.wait(list(self.tasks), timeout=POLL_SECONDS)
        for reference in over:
            self._end(reference, self.tasks.pop(reference))
        if not over:
            self._tell_progress()

    def stop(self) -> None:
        """Have running trials checkpoint, and drop the tasks that have not begun."""
        for reference in self.tasks:
            ray.cancel(reference, force=False)

    def _end(self, reference: "ray.ObjectRef[Any]", run: str) -> None:
        """Tell the schedule how a task ended."""
        try:
            *warnings, end = [TrialEvent(**event) for event in ray.get(reference)]
        except RayTaskError as error:
            # What its machine lacks the others may lack, too.
            self.schedule.requeue(self.schedule.running.pop(run))
            self._give_up(describe_error(error.cause))
        except RayError as error:
            self.schedule.fail(run, f"with {describe_error(error)}")
        else:
            for warning in warnings:
                self.schedule.on_event(warning)
            self.schedule.end(end)

    def _require_node(self) -> None:
        """End the sweep if no node has what a trial needs."""
        cpus, gpus, now = self.settings["cpus"], self.settings["gpus"], time.monotonic()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        patience = 0.0 if self.settings["address"] == "local" else NO_NODE_SECONDS
        if any(one.get("CPU", 0) >= cpus and one.get("GPU", 0) >= gpus for one in nodes):
            self.last_node = now
        elif now - self.last_node >= patience:
            self._give_up(f"no node has {cpus} CPU and {gpus:g} GPU for a trial")

    def _give_up(self, reason: str) -> None:
        # What is cancelled then fails for no other reason.
        self.schedule.limits.reason = self.schedule.limits.reason or reason

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


def main() -> None:
    """Serve the runner that started this process."""
    stopping = threading.Event()
    say, requests = serve(stopping.set)

    def tell(event: TrialEvent) -> None:
        say(asdict(event))

    try:
        settings = requests.get()
        limits = Limits(trials=settings["max_trials"], paused=stopping.is_set)
        specs = [RunSpec.load(spec) for spec in settings["specs"]]
        schedule = Schedule(specs, Path(settings["root"]), limits, tell)
        drive(Cluster(settings, schedule), schedule)
        reason = limits.reason
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 Ray raises what it likes
        reason = describe_error(error)
    tell(TrialEvent("stopped", "", message=reason))
    ray.shutdown()


if __name__ == "__main__":
    main()
