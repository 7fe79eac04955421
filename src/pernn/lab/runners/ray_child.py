"""A process that drives Ray: trials come in, events go out.

It ends after the order to stop, or when its input does: running trials are then checkpointed.
"""

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
from pernn.lab.store import storing

from .ray import DIED, NOT_BEGUN, describe_code
from .runner import SIGNALS, STOP, TrialEvent, deferred_interrupt, run_request
from .worker import LOG, Requests, serve

HOST = "127.0.0.1"
WAIT_SECONDS, NUM_LOOKS = 0.2, 10
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


def connect(settings: Mapping[str, Any]) -> Any:
    """Return what starts a task on the cluster.

    One that is started for it (`local`) ends with this process.
    """
    address, jobs, cpus = settings["address"], settings["jobs"], settings["cpus"]
    own = {"num_cpus": jobs and jobs * cpus, "include_dashboard": False, "_node_ip_address": HOST}
    variables = {"OMP_NUM_THREADS": str(cpus), SINKS_VARIABLE: os.environ.get(SINKS_VARIABLE, "")}
    if "PERNN_DATA" in os.environ:
        variables["PERNN_DATA"] = str(Path(os.environ["PERNN_DATA"]).resolve())
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            runtime_env={"env_vars": variables},
            **(own if address == "local" else {}),
        )
    except Exception as error:
        # Ray raises what it likes, plain `Exception` among it.
        raise MachineError(f"Ray does not start: {_first_line(error)}") from error
    # The parent counts deaths and sends such trials again.
    return ray.remote(task).options(
        num_cpus=cpus, num_gpus=settings["gpus"], max_retries=0, scheduling_strategy="SPREAD"
    )


def run(settings: Mapping[str, Any], requests: Requests, tell: Callable[[TrialEvent], None]) -> str:
    """Run what is asked for until the last task is over.

    Returns:
        Why the cluster cannot run trials; empty if it can.
    """
    remote, tasks = connect(settings), dict[ray.ObjectRef[Any], str]()
    for number in SIGNALS:
        # Ray's own handlers would end the tasks at once.
        signal.signal(number, lambda *_: requests.put(STOP))
    tell(TrialEvent("running", "", message="connected"))
    patience = 0.0 if settings["address"] == "local" else NO_NODE_SECONDS
    stopping, problem, last_node = False, "", time.monotonic()
    while tasks or not stopping:
        while not requests.empty():
            request = requests.get()
            if request == STOP:
                # A second cancellation would not wait for the checkpoint.
                for reference in () if stopping else tasks:
                    ray.cancel(reference, force=False)
                stopping = True
            elif not stopping:
                reference = remote.remote(settings["mark"], settings["code"], request)
                tasks[reference] = request["run"]
        over, _ = ray.wait(list(tasks), timeout=WAIT_SECONDS) if tasks else ([], [])
        for reference in over:
            said = _end(reference, tasks.pop(reference), tell)
            # What was cancelled has failed for no other reason.
            problem = problem or ("" if stopping else said)
        if stopping or not (missing := _missing_node(settings["cpus"], settings["gpus"])):
            last_node = time.monotonic()
        elif time.monotonic() - last_node >= patience:
            problem = missing
        if problem and not stopping:
            requests.put(STOP)
        if not tasks:
            time.sleep(WAIT_SECONDS)
    return problem


def _end(reference: "ray.ObjectRef[Any]", run: str, tell: Callable[[TrialEvent], None]) -> str:
    """Tell how a task ended, and return what its machine lacks.

    The other machines may lack it, too.
    """
    problem, events = "", list[TrialEvent]()
    try:
        events = [TrialEvent(**event) for event in ray.get(reference)]
    except RayTaskError as error:
        problem = _first_line(error.cause)
    except TaskCancelledError:
        pass
    except RayError as error:
        reason = f"with {type(error).__name__}: {_first_line(error)}"
        events = [TrialEvent("failed", run, message=reason, error=DIED)]
    for event in events or [TrialEvent("stopped", run, error=NOT_BEGUN)]:
        tell(event)
    return problem


def _missing_node(cpus: int, gpus: float) -> str:
    """Describe the nodes if none has what a trial needs."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(one.get("CPU", 0) >= cpus and one.get("GPU", 0) >= gpus for one in nodes):
        return ""
    found = [f"{one.get('CPU', 0):g} CPU and {one.get('GPU', 0):g} GPU" for one in nodes]
    return (
        f"no node of the Ray cluster has {cpus} CPU and {gpus:g} GPU for a trial "
        f"(nodes: {', '.join(found) or 'none'})"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def main() -> None:
    """Serve the runner that started this process."""
    say, requests = serve()

    def tell(event: TrialEvent) -> None:
        say(asdict(event))

    try:
        problem = run(requests.get(), requests, tell)
    except (ConnectionError, ValueError, RuntimeError, PernnError) as error:
        problem = _first_line(error)
    if problem:
        tell(TrialEvent("failed", "", message=problem))
    ray.shutdown()


if __name__ == "__main__":
    main()
