"""Measures trials in worker processes: orders come in as JSON lines, what was measured goes out.

Each trial is executed for a few updates in a process and a directory of its own, so that memory and
files are its own; as many at a time as the sweep will run, so that they disturb each other as much.
"""

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import torch

from pernn.training import choose_device, computing, keep_freed_memory

from .analysing import analyse
from .assembly import build_task
from .execution import TooLargeError, check_memory, execute
from .spec import RunSpec

NUM_UPDATES = 60
"""The first dozens of a small network take half as long again as those that follow."""
ENOUGH_SECONDS = 1.0
"""Time after which fewer updates are enough, but for three; the first one sets everything up."""


def measure(spec: RunSpec, device: str, threads: int) -> dict[str, Any]:
    """Return what a few updates of one stage take: seconds of each, bytes of files and memory."""
    torch.set_num_threads(threads)
    alone = spec.model_copy(update={"pretraining": None, "analysis": None})
    training = {"iterations": NUM_UPDATES, "log_interval": 1, "keep_interval": None}
    training |= {"evaluation_interval": NUM_UPDATES, "checkpoint_interval": NUM_UPDATES}
    short = alone.override({f"training.{name}": value for name, value in training.items()})
    moments: list[float] = []
    with tempfile.TemporaryDirectory(prefix="pernn-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if spec.analysis is not None:
            seconds = [_time_analysis(spec, alone, Path(folder), device)]
            return {"update_seconds": seconds, "memory": peak_memory()}

        def on_update(_update: int) -> bool:
            if device != "cpu" and torch.cuda.is_available():
                torch.cuda.synchronize()
            moments.append(time.perf_counter())
            return len(moments) < 3 or moments[-1] - moments[0] < ENOUGH_SECONDS

        execute(short, Path(folder), device=device, threads=threads, on_update=on_update)
        end = time.perf_counter() - moments[-1]
        sizes = {path: path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()}
    checkpoint = sum(size for path, size in sizes.items() if "checkpoints" in path.parts)
    lines = sum(size for path, size in sizes.items() if path.name == "metrics.jsonl")
    return {
        "update_seconds": [b - a for a, b in pairwise(moments)],
        "round_seconds": end,
        "checkpoint": checkpoint,
        # Metrics have a line per update here, the result a row per evaluation: there is one.
        "line": lines / len(moments),
        "rest": sum(sizes.values()) - checkpoint - lines,
        "memory": peak_memory(),
    }


def _time_analysis(spec: RunSpec, first: RunSpec, root: Path, device: str) -> float:
    """Time the analysis of one checkpoint: that before the first update."""
    chosen = choose_device(device)
    begun = time.perf_counter()
    with computing("fp32", chosen):
        list(analyse(spec, first, root, [0], chosen))
    return time.perf_counter() - begun


def peak_memory() -> int:
    """Return the most bytes of memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `getrusage`: on Linux a process inherits that number from its parent.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _answer(order: Mapping[str, Any], where: Mapping[str, Any], connection: Connection) -> None:
    found: dict[str, Any]
    try:
        spec, device = RunSpec.load(order["spec"]), where["device"]
        chosen = choose_device(device)
        check_memory(spec, build_task(spec, chosen), chosen)
        found = measure(spec, device, where["threads"])
    except TooLargeError as error:
        found = {"error": str(error), "fits": False}
    except Exception as error:  # noqa: BLE001 the trial itself will say so, too
        found = {"error": f"{type(error).__name__}: {error}"}
    connection.send(found)
    os._exit(0)


def main() -> None:
    """Serve `measure_kinds`: the first line says where and for how long, each other one what."""
    keep_freed_memory()
    where = json.loads(sys.stdin.readline())
    orders = [json.loads(line) for line in sys.stdin]
    # Whatever a process leaves that is ended lies in here.
    scratch = tempfile.TemporaryDirectory(prefix="pernn-")
    tempfile.tempdir = scratch.name
    context = multiprocessing.get_context("fork")
    deadline = time.monotonic() + where["seconds"]
    running: dict[Connection, tuple[ForkProcess, str]] = {}
    parent = os.getppid()
    while orders or running:
        while orders and len(running) < where["jobs"]:
            order = orders.pop(0)
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_answer, args=(order, where, theirs))
            process.start()
            theirs.close()
            running[ours] = process, order["key"]
        left = deadline - time.monotonic()
        over = wait(list(running), timeout=max(0.0, min(left, 1.0)))
        for ours in [one for one in running if one in over]:
            process, key = running.pop(ours)
            try:
                found = ours.recv()
            except EOFError:
                found = {"error": "its process died: is there too little memory?", "fits": False}
            process.join()
            sys.stdout.write(json.dumps({"key": key, **found}) + "\n")
            sys.stdout.flush()
        if left <= 0 or os.getppid() != parent:
            # Time is up, or nobody is there any more to be told.
            for process, _ in running.values():
                process.kill()
            break
    scratch.cleanup()


if __name__ == "__main__":
    main()
