"""A Ray cluster of a head and two nodes: a worker is killed, then a node, while a sweep runs.

The nodes are separate raylets on this machine, each a group of processes that can be killed.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from pernn.lab.runners import RayRunner, TrialEvent
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory

from .commands import Counts
from .trials import compare, pgrep, run_of, send

START_SECONDS = 240.0
"""Within which a node serves, on a machine however busy."""
HOST = "127.0.0.2"
"""Loopback, too, but not the address that Ray takes for a mistake and replaces."""
SPEC = RunSpec.load({
    "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 32},
    "core": {"kind": "elman", "hidden_size": 8}, "encoding": {"kind": "none"},
    "embedding_size": 8, "training": {"batch_size": 4},
})  # fmt: skip


class RayNodes:
    """A head without CPUs, and nodes that work; Ray keeps logs and sockets in the folder."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> None:
        """Start a node and wait until it serves."""
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--block",
                 "--disable-usage-stats", f"--node-ip-address={HOST}",
                 "--object-store-memory=100000000", *words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        self.nodes.append(process)
        deadline = time.monotonic() + START_SECONDS
        while b"Ray runtime started" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"a Ray node did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)

    def workers(self, node: int) -> list[int]:
        """Return the processes of a node that carry out tasks at this moment."""
        own = descendants(self.nodes[node].pid)
        return [pid for pid in own if title(pid).startswith("ray::task")]

    def kill(self, node: int) -> None:
        """Kill a node at once: its raylet, its workers, all that belongs to it."""
        for pid in [self.nodes[node].pid, *descendants(self.nodes[node].pid)]:
            send(pid, signal.SIGKILL)
        self.nodes[node].wait()


def descendants(process: int) -> list[int]:
    """Return a process's children, their children and so on."""
    found = pgrep("--parent", process)
    return found + [below for child in found for below in descendants(child)]


def title(process: int) -> str:
    """Return what a process calls itself; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@contextmanager
def ray_nodes(num_nodes: int, cpus_per_node: int) -> Iterator[RayNodes]:
    """Have a cluster on loopback while the block runs; nothing of it is left afterwards."""
    # Sockets' paths are short, so not below the test's own directory.
    folder = Path(tempfile.mkdtemp(prefix="pernn-ray-"))
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # A dead node is noticed after seconds; by default it takes Ray half a minute.
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "10000",
        "RAY_health_check_failure_threshold": "5",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
    }
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    cluster = RayNodes(f"{HOST}:{port}", folder)
    with patch.dict(os.environ, settings):
        try:
            cluster.start("--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={folder}",
                          "--include-dashboard=false")  # fmt: skip
            for _ in range(num_nodes):
                cluster.start(f"--address={cluster.address}", f"--num-cpus={cpus_per_node}")
            yield cluster
        finally:
            for node in reversed(range(len(cluster.nodes))):
                cluster.kill(node)
            shutil.rmtree(folder, ignore_errors=True)


def ray_cluster(
    directory: Path, *, num_trials: int = 40, iterations: int = 10_000, limit_seconds: float = 600
) -> Counts:
    """Run trials on the cluster, kill a worker after a quarter of them and a node after half.

    None may lack a result, be done twice, or end in other bits than in an undisturbed sweep.
    """
    sizes = {"training.iterations": iterations, "training.checkpoint_interval": iterations // 10}
    specs = [SPEC.override({**sizes, "seed": seed}) for seed in range(num_trials)]
    root, begun = directory / "fire", time.monotonic()
    with ray_nodes(num_nodes=2, cpus_per_node=1) as nodes:
        heard = _Killer(nodes, root, num_trials // 4, num_trials // 2)
        limit = threading.Timer(limit_seconds, os.kill, (os.getpid(), signal.SIGINT))
        limit.start()
        try:
            RayRunner(address=nodes.address, device="cpu").run(specs, root, heard)
        finally:
            limit.cancel()
    assert (heard.num_workers, heard.num_nodes) == (1, 1), "nothing was killed"
    assert set(heard.ends.values()) == {"finished"}, heard.ends
    assert len(heard.ends) == num_trials
    seconds = round(time.monotonic() - begun, 1)
    found = compare(root, specs)
    assert found["finished lines"] == num_trials, found
    journals = [run_of(root, spec).read_journal() for spec in specs]
    started = [sum(line["event"] == "started" for line in journal) for journal in journals]
    assert set(started) == {1}, "a trial began anew"
    return {
        "trials": num_trials,
        "workers killed": heard.num_workers,
        "nodes killed": heard.num_nodes,
        "taken up again": found["resumptions"],
        "done twice": 0,
        "identical": found["results"],
        "seconds": seconds,
    }


class _Killer:
    """Kill a worker and a node after so many trials, when all that run have a checkpoint."""

    def __init__(self, nodes: RayNodes, results: Path, worker_after: int, node_after: int) -> None:
        self.nodes, self.results = nodes, results
        self.worker_after, self.node_after = worker_after, node_after
        self.ends: dict[str, str] = {}
        self.begun: set[str] = set()
        self.num_workers = self.num_nodes = 0

    def __call__(self, event: TrialEvent) -> None:
        if event.is_end:
            assert event.run not in self.ends, f"{event.run} ended twice"
            self.ends[event.run] = event.state
        self.begun.add(event.run)
        # A worker may end between two looks.
        busy = {node: found for node in (1, 2) if (found := self.nodes.workers(node))}
        running = self.begun - set(self.ends)
        if not busy or not running or not all(map(self._can_go_on, running)):
            return
        if not self.num_workers and len(self.ends) >= self.worker_after:
            os.kill(next(iter(busy.values()))[0], signal.SIGKILL)
            self.num_workers += 1
        elif not self.num_nodes and len(self.ends) >= self.node_after:
            self.nodes.kill(max(busy))
            self.num_nodes += 1

    def _can_go_on(self, run: str) -> bool:
        checkpoints = RunDirectory(self.results, run).path.glob("checkpoints/update-*")
        return any(int(one.name.removeprefix("update-")) for one in checkpoints)
