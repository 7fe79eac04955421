"""A Ray cluster of a head and two nodes: a worker is killed, then a node, while a sweep runs."""

import os
import signal
import threading
import time
from pathlib import Path

from pernn.lab.runners import LocalRunner, RayRunner, TrialEvent
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory

from .ray_nodes import RayNodes, ray_nodes
from .trials import compare

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 32},
        "core": {"kind": "elman", "hidden_size": 8},
        "encoding": {"kind": "none"},
        "embedding_size": 8,
        "training": {"batch_size": 4},
    }
)


def ray_cluster(
    directory: Path, *, num_trials: int = 40, iterations: int = 10_000, limit_seconds: float = 600
) -> dict[str, int | float | str]:
    """Run trials on the cluster, kill a worker after a quarter of them and a node after half.

    Args:
        directory: An empty folder for results.
        num_trials: Trials of the sweep.
        iterations: Updates of each.
        limit_seconds: Time after which the sweep is given up.

    Returns:
        What happened, as counts.

    Raises:
        AssertionError: If a trial has no result, was done twice, or ended in other bits than in an
            undisturbed sweep.
    """
    sizes = {"training.iterations": iterations, "training.checkpoint_interval": iterations // 10}
    specs = [SPEC.override({**sizes, "seed": seed}) for seed in range(num_trials)]
    LocalRunner(jobs=2, device="cpu").run(specs, directory / "undisturbed", lambda event: None)
    begun = time.monotonic()
    with ray_nodes(num_nodes=2, cpus_per_node=1) as nodes:
        heard = _Killer(
            nodes, directory / "fire", worker_after=num_trials // 4, node_after=num_trials // 2
        )
        limit = threading.Timer(limit_seconds, os.kill, (os.getpid(), signal.SIGINT))
        limit.start()
        try:
            RayRunner(address=nodes.address, device="cpu").run(specs, directory / "fire", heard)
        finally:
            limit.cancel()
    assert (heard.num_workers, heard.num_nodes) == (1, 1), "nothing was killed"
    assert set(heard.ends.values()) == {"finished"}, heard.ends
    assert len(heard.ends) == num_trials
    found = compare(directory / "fire", directory / "undisturbed", specs)
    assert found["finished lines"] == num_trials, found
    journals = [RunDirectory(directory / "fire", s.fingerprint()).read_journal() for s in specs]
    started = [sum(line["event"] == "started" for line in journal) for journal in journals]
    assert set(started) == {1}, "a trial began anew"
    return {
        "trials": num_trials,
        "workers killed": heard.num_workers,
        "nodes killed": heard.num_nodes,
        "taken up again": found["resumptions"],
        "done twice": 0,
        "identical": found["results"],
        "seconds": round(time.monotonic() - begun, 1),
    }


class _Killer:
    """Kill when it is time, where every trial that runs has a checkpoint to go on from.

    Args:
        nodes: The cluster.
        results: The sweep's results directory.
        worker_after: Finished trials after which a worker is killed.
        node_after: Finished trials after which a node is killed.
    """

    def __init__(self, nodes: RayNodes, results: Path, worker_after: int, node_after: int) -> None:
        self.nodes, self.worker_after, self.node_after = nodes, worker_after, node_after
        self.results = results
        self.ends: dict[str, str] = {}
        self.begun: set[str] = set()
        self.num_workers = self.num_nodes = 0

    def __call__(self, event: TrialEvent) -> None:
        if event.is_end:
            assert event.run not in self.ends, f"{event.run} ended twice"
            self.ends[event.run] = event.state
        self.begun.add(event.run)
        busy = [node for node in (1, 2) if self.nodes.workers(node)]
        running = self.begun - set(self.ends)
        if not busy or not running or not all(map(self._can_go_on, running)):
            return
        if not self.num_workers and len(self.ends) >= self.worker_after:
            os.kill(self.nodes.workers(busy[0])[0], signal.SIGKILL)
            self.num_workers += 1
        elif not self.num_nodes and len(self.ends) >= self.node_after:
            self.nodes.kill(busy[-1])
            self.num_nodes += 1

    def _can_go_on(self, run: str) -> bool:
        checkpoints = RunDirectory(self.results, run).path.glob("checkpoints/update-*")
        return any(int(one.name.removeprefix("update-")) for one in checkpoints)
