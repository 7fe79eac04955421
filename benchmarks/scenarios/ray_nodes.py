"""Ray nodes on this machine: separate raylets, each a group of processes that can be killed."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 240.0
"""Within which a node serves, on a machine however busy."""
HOST = "127.0.0.2"
"""Loopback, too, but not the address that Ray takes for a mistake and replaces."""


@dataclass
class RayNodes:
    """A head without CPUs, and nodes that work.

    Attributes:
        port: Port of the head, on loopback.
        folder: Where Ray keeps its logs and sockets.
        nodes: `ray start --block` of the head, then of each node.
    """

    port: int
    folder: Path
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Return what `--address` takes."""
        return f"{HOST}:{self.port}"

    def start(self, *words: str) -> None:
        """Start a node and wait until it serves."""
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--block",
                 "--disable-usage-stats", f"--node-ip-address={HOST}", *words],
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
        return [
            pid for pid in descendants(self.nodes[node].pid) if title(pid).startswith("ray::task")
        ]

    def kill(self, node: int) -> None:
        """Kill a node at once: its raylet, its workers, all that belongs to it."""
        for pid in [self.nodes[node].pid, *descendants(self.nodes[node].pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.nodes[node].wait()


def descendants(process: int) -> list[int]:
    """Return a process's children, their children and so on."""
    found = subprocess.run(
        ["pgrep", "--parent", str(process)], capture_output=True, text=True, check=False
    )
    children = [int(word) for word in found.stdout.split()]
    return children + [below for child in children for below in descendants(child)]


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
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    cluster = RayNodes(port, folder)
    try:
        cluster.start("--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false",
                      f"--temp-dir={folder}", "--object-store-memory=100000000")  # fmt: skip
        for _ in range(num_nodes):
            cluster.start(f"--address={cluster.address}", f"--num-cpus={cpus_per_node}",
                          "--object-store-memory=100000000")  # fmt: skip
        yield cluster
    finally:
        for node in reversed(range(len(cluster.nodes))):
            cluster.kill(node)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)
