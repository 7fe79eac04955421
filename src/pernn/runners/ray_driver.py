"""Drives Ray in a process of its own: orders come in as JSON lines, what is over goes out.

It ends when its input does: running trials are checkpointed, and the cluster is left.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TextIO

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from .jobs import carry
from .runner import STOP

WAIT_SECONDS, LOOK_SECONDS = 0.2, 2.0
NO_NODE_SECONDS = 60.0
"""Time for which a cluster may have no node for a trial, for example while one starts."""


def task(order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Carry a job's trials on a node; being cancelled finishes the update and checkpoints."""
    from .leaving import deferred_interrupt

    with deferred_interrupt() as interrupted:
        return carry(order, lambda: not interrupted.is_set())


class Driver:
    """Sends tasks and tells what became of them.

    Args:
        options: `address`, `jobs`, `cpus`, `gpus` and `threads`, as of `RayRunner`.
        output: Where lines go.
    """

    def __init__(self, options: Mapping[str, Any], output: TextIO) -> None:
        self.options, self.output = options, output
        self.orders: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.tasks: dict[ray.ObjectRef[Any], str] = {}
        self.slots = 0
        self.last_node = time.monotonic()
        self.patience = 0.0 if options["address"] == "local" else NO_NODE_SECONDS
        self.last_look = float("-inf")
        self.leaving = False

    def connect(self) -> None:
        """Join the cluster, or start one that ends with this process."""
        address = self.options["address"]
        own: dict[str, Any] = {
            "num_cpus": math.ceil((self.options["jobs"] or 0) * self.options["cpus"]) or None,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
        variables = {"OMP_NUM_THREADS": str(self.options["threads"])}
        if "PERNN_DATA" in os.environ:
            variables["PERNN_DATA"] = str(Path(os.environ["PERNN_DATA"]).resolve())
        ray.init(
            address=address,
            log_to_driver=False,
            runtime_env={"env_vars": variables},
            **(own if address == "local" else {}),
        )
        # Deaths are counted by who sends the orders, and our exceptions are not to be repeated.
        self.remote = ray.remote(task).options(
            num_cpus=self.options["cpus"],
            num_gpus=self.options["gpus"],
            max_retries=0,
            scheduling_strategy="SPREAD",
        )

    def look(self) -> None:
        """Say how many trials the cluster has room for when that changes.

        Raises:
            LookupError: If no node could take any for a while.
        """
        if time.monotonic() - self.last_look < LOOK_SECONDS:
            return
        self.last_look = time.monotonic()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        slots = sum(self._room_of(node) for node in nodes)
        if slots:
            self.last_node = self.last_look
        elif self.last_look - self.last_node >= self.patience:
            found = ", ".join(
                f"{node.get('CPU', 0):g} CPU and {node.get('GPU', 0):g} GPU" for node in nodes
            )
            raise LookupError(
                f"no node of the Ray cluster has {self.options['cpus']:g} CPU and "
                f"{self.options['gpus']:g} GPU for a trial (nodes: {found or 'none'})"
            )
        if slots and slots != self.slots:
            self.slots = slots
            self.tell({"slots": slots})

    def _room_of(self, node: Mapping[str, float]) -> int:
        parts = [
            node.get(name, 0.0) // self.options[key]
            for name, key in (("CPU", "cpus"), ("GPU", "gpus"))
            if self.options[key]
        ]
        return int(min(parts))

    def listen(self, lines: TextIO) -> None:
        """Take orders until the input ends; a stop order or the end stops everything."""
        for line in lines:
            order = json.loads(line)
            if order == STOP:
                break
            self.orders.put(order)
        self.orders.put(None)

    def tell(self, line: Mapping[str, Any]) -> None:
        """Send a line."""
        self.output.write(json.dumps(line) + "\n")
        self.output.flush()

    def work(self) -> None:
        """Carry out orders until told to stop or there is no going on; checkpoint what runs."""
        try:
            self.look()
            while self._take_orders():
                self.look()
                self._tell_ended()
        finally:
            self.leaving = True
            for reference in self.tasks:
                ray.cancel(reference, force=False)
            while self.tasks:
                self._tell_ended()

    def _take_orders(self) -> bool:
        """Send what was ordered; false when it is time to stop."""
        while True:
            try:
                order = self.orders.get(timeout=0 if self.tasks else WAIT_SECONDS)
            except Empty:
                return True
            if order is None:
                return False
            self.tasks[self.remote.remote(order)] = order["job"]

    def _tell_ended(self) -> None:
        over, _ = ray.wait(list(self.tasks), timeout=WAIT_SECONDS) if self.tasks else ([], [])
        for reference in over:
            ends: list[dict[str, Any]] = []
            reason = ""
            try:
                ends = ray.get(reference)
            except TaskCancelledError:
                reason = "cancelled"
            except RayTaskError as error:
                # Not a trial failed but its machine: it would fail the others, too.
                reason = _first_line(error.cause)
                if not self.leaving:
                    raise LookupError(reason) from None
            except RayError as error:
                reason = f"{type(error).__name__}: {_first_line(error)}"
            self.tell({"job": self.tasks.pop(reference), "ends": ends, "reason": reason})


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def main() -> None:
    """Serve the runner that started this process."""
    # Whatever Ray prints must not mix with the lines.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    driver = Driver(json.loads(sys.argv[1]), output)
    threading.Thread(target=driver.listen, args=(sys.stdin,), daemon=True).start()
    try:
        driver.connect()
        driver.work()
    except (LookupError, ConnectionError, ValueError, RuntimeError) as error:
        driver.tell({"error": _first_line(error)})
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
