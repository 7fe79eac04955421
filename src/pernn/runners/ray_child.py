"""Drives Ray in a process of its own: one order comes in, the trials' events go out.

It ends when all trials have, or when its input does: running trials are then checkpointed.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from pernn.errors import PernnError
from pernn.runs import SINKS_VARIABLE, RunSpec

from .cluster import JournalWatch, run_orders
from .runner import Limits, TrialEvent, deferred_interrupt, make_order
from .schedule import Schedule, drive
from .worker import serve

WAIT_SECONDS, LOOK_SECONDS, WATCH_SECONDS = 0.2, 2.0, 0.5
NO_NODE_SECONDS = 60.0
"""Time for which a cluster may have no node for a trial, for example while one starts."""
MAX_QUEUED = 1000
"""Tasks that wait in Ray's queue or run, unless there is a limit of jobs."""


def task(folder: str, order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a trial on a node; being cancelled finishes the update and checkpoints."""
    interrupted = threading.Event()
    with deferred_interrupt(interrupted):
        ends = run_orders(folder, [order], lambda: not interrupted.is_set())
    return [asdict(end) for end in ends]


class Tasks:
    """The tasks of one sweep."""

    def __init__(self, order: Mapping[str, Any], schedule: Schedule) -> None:
        self.order, self.schedule = order, schedule
        self.watch = JournalWatch(schedule.root, schedule.on_event)
        self.tasks: dict[ray.ObjectRef[Any], str] = {}
        self.last_node = time.monotonic()
        self.patience = 0.0 if order["address"] == "local" else NO_NODE_SECONDS
        self.looked = self.watched = float("-inf")
        self._connect()

    def _connect(self) -> None:
        """Join the cluster, or start one that ends with this process."""
        own: dict[str, Any] = {
            "num_cpus": math.ceil((self.order["jobs"] or 0) * self.order["cpus"]) or None,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
        variables = {"OMP_NUM_THREADS": str(self.order["threads"])}
        if "PERNN_DATA" in os.environ:
            variables["PERNN_DATA"] = str(Path(os.environ["PERNN_DATA"]).resolve())
        variables |= {key: os.environ[key] for key in (SINKS_VARIABLE,) if key in os.environ}
        address = self.order["address"]
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                runtime_env={"env_vars": variables},
                **(own if address == "local" else {}),
            )
        except Exception as error:
            # Ray raises what it likes, plain `Exception` among it.
            raise LookupError(f"Ray does not start: {_first_line(error)}") from error
        # The schedule counts deaths and takes such trials up again.
        self.remote = ray.remote(task).options(
            num_cpus=self.order["cpus"],
            num_gpus=self.order["gpus"],
            max_retries=0,
            scheduling_strategy="SPREAD",
        )

    def has_room(self) -> bool:
        """Leave it to Ray when a task runs, unless the user limits their number."""
        return len(self.tasks) < (self.order["jobs"] or MAX_QUEUED)

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Send a trial to the cluster."""
        where = {name: self.order[name] for name in ("device", "threads")}
        share = self.order["gpus"] or 1.0
        order = make_order(spec, self.schedule.root, expired=expired, gpu_share=share, **where)
        self.watch.begin(order["run"])
        self.tasks[self.remote.remote(self.order["folder"], order)] = order["run"]

    def look(self) -> None:
        """Wait for the next task that is over; tell how the others get on."""
        self._check_nodes()
        over, _ = ray.wait(list(self.tasks), timeout=WAIT_SECONDS) if self.tasks else ([], [])
        if time.monotonic() - self.watched > WATCH_SECONDS:
            self.watched = time.monotonic()
            self.watch.look(self.schedule.running)
        for reference in over:
            self._end(reference, self.tasks.pop(reference))
        if not self.tasks:
            time.sleep(WAIT_SECONDS)

    def stop(self) -> None:
        """Have running trials checkpoint, and drop the tasks that have not begun."""
        for reference in self.tasks:
            ray.cancel(reference, force=False)

    def _end(self, reference: "ray.ObjectRef[Any]", run: str) -> None:
        try:
            ends = [TrialEvent(**end) for end in ray.get(reference)]
        except RayTaskError as error:
            # Not a trial failed but its machine: it would fail the others, too.
            if not self.schedule.stopping:
                del self.schedule.running[run]
                raise LookupError(_first_line(error.cause)) from None
            ends = []
        except TaskCancelledError:
            ends = []
        except RayError as error:
            self.schedule.die(run, f"with {type(error).__name__}: {_first_line(error)}")
            return
        if ends:
            self.schedule.end(ends[0])
        else:
            self.schedule.put_back([self.schedule.running.pop(run)])

    def _check_nodes(self) -> None:
        """Find out whether any node has what a trial needs."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        cpus, gpus = self.order["cpus"], self.order["gpus"]
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(one.get("CPU", 0) >= cpus and one.get("GPU", 0) >= gpus for one in nodes):
            self.last_node = now
        elif now - self.last_node >= self.patience:
            found = ", ".join(
                f"{one.get('CPU', 0):g} CPU and {one.get('GPU', 0):g} GPU" for one in nodes
            )
            raise LookupError(
                f"no node of the Ray cluster has {cpus:g} CPU and {gpus:g} GPU for a trial "
                f"(nodes: {found or 'none'})"
            )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _listen(lines: TextIO, schedule: Schedule) -> None:
    """Take anything more that is read, and the end of the input, for the order to stop."""
    lines.readline()
    schedule.interrupted.set()


def main() -> None:
    """Serve the runner that started this process."""
    output = serve()

    def tell(event: TrialEvent) -> None:
        output.write(json.dumps(asdict(event)) + "\n")
        output.flush()

    order = json.loads(sys.stdin.readline())
    specs = [RunSpec.load(values) for values in order.pop("specs")]
    schedule = Schedule(specs, Path(order["root"]), Limits(trials=order["max_trials"]), tell)
    threading.Thread(target=_listen, args=(sys.stdin, schedule), daemon=True).start()
    try:
        tasks = Tasks(order, schedule)
        tell(TrialEvent("running", "", message="connected"))
        try:
            drive(tasks, schedule)
        except LookupError:
            schedule.stop()
            tasks.stop()
            while schedule.running:
                tasks.look()
            raise
    except KeyboardInterrupt:
        pass
    except (LookupError, ConnectionError, ValueError, RuntimeError, PernnError) as error:
        tell(TrialEvent("failed", "", message=_first_line(error)))
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
