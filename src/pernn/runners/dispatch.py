"""The driver's side of a cluster: send trials, pass on what is heard, take up again what died."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pernn.errors import ConfigError
from pernn.runs import RunSpec
from pernn.store import is_done

from .jobs import JobFolder
from .leaving import Limits, deferred_interrupt
from .runner import ENDS, Hear, TrialEvent
from .waiting import WaitingTrials


@dataclass(frozen=True)
class Ended:
    """A job that is over.

    Attributes:
        job: Its name.
        ends: The last event of each trial that it brought to an end.
        reason: Why there may be fewer of them than it has trials.
    """

    job: str
    ends: Sequence[TrialEvent]
    reason: str = ""


@runtime_checkable
class Cluster(Protocol):
    """What a kind of cluster owes the driver."""

    def room(self) -> int:
        """Say how many jobs may be sent at a time."""
        ...

    def send(self, orders: Sequence[Mapping[str, Any]]) -> None:
        """Start jobs, or have them wait for their turn over there."""
        ...

    def ended(self) -> Sequence[Ended]:
        """Give the jobs that are over since last asked; waits a moment if there is none."""
        ...

    def stop(self) -> None:
        """Have running trials checkpointed, and jobs that have not begun given up."""
        ...


def dispatch(
    cluster: Cluster,
    specs: Sequence[RunSpec],
    folder: JobFolder,
    hear: Hear,
    *,
    device: str,
    threads: int,
    trials_per_job: int = 1,
    busy_seconds: float,
    limits: Limits,
) -> None:
    """Carry every trial to its end on a cluster, or to a limit.

    Raises:
        KeyboardInterrupt: After a signal, when every running trial is checkpointed.
    """
    waiting = WaitingTrials(specs, busy_seconds)
    sent: dict[str, list[RunSpec]] = {}

    def listen(event: TrialEvent) -> None:
        limits.hear(event)
        hear(event)

    with deferred_interrupt() as interrupted:
        while (waiting or sent) and not (interrupted.is_set() or limits.reached()):
            running = sum(map(len, sent.values()))
            room = min(trials_per_job * (cluster.room() - len(sent)), len(specs))
            room = sum(limits.leave_room(running + more) for more in range(room))
            missing = _missing(waiting.take(room), folder.root, listen)
            batches = [
                missing[first : first + trials_per_job]
                for first in range(0, len(missing), trials_per_job)
            ]
            orders = [folder.order(batch, device, threads) for batch in batches]
            if orders:
                cluster.send(orders)
            sent |= {order["job"]: batch for order, batch in zip(orders, batches, strict=True)}
            for over in cluster.ended():
                _tell(folder, over.job, listen)
                _settle(over, sent.pop(over.job), waiting, listen)
            for job in sent:
                _tell(folder, job, listen)
        if sent:
            cluster.stop()
        while sent:
            for over in cluster.ended():
                sent.pop(over.job, None)
                for event in over.ends:
                    listen(event)
    if interrupted.is_set():
        raise KeyboardInterrupt


def _missing(specs: Sequence[RunSpec], root: Path, hear: Hear) -> list[RunSpec]:
    """Leave out the trials that another driver has finished meanwhile."""
    missing = []
    for spec in specs:
        run = spec.fingerprint()
        if is_done(root, run):
            hear(TrialEvent("already done", run, spec.num_updates))
        else:
            missing.append(spec)
    return missing


def _tell(folder: JobFolder, job: str, hear: Hear) -> None:
    """Pass on what happened on the way; ends are told when they are settled."""
    for event in folder.news(job):
        if event.kind not in ENDS:
            hear(event)


def _settle(over: Ended, specs: Sequence[RunSpec], waiting: WaitingTrials, hear: Hear) -> None:
    """Tell how trials ended, and put back those that are to be tried again."""
    ends = {event.run: event for event in over.ends}
    lost = [spec for spec in specs if spec.fingerprint() not in ends]
    for spec in reversed(lost[1:]):
        waiting.put_back(spec)
    # A job does its trials in turn: the first without an end was the one it was at.
    last = [waiting.died(spec, over.reason) for spec in lost[:1]]
    for spec in specs:
        event = ends.get(spec.fingerprint())
        if event is None:
            continue
        if event.kind == "busy":
            last.append(waiting.found_busy(spec, event))
        elif event.kind == "stopped":
            # Nobody here asked for it: its machine is being taken away.
            waiting.put_back(spec)
        else:
            last.append(event)
    for end in last:
        if end is not None:
            hear(end)


def device_of_job(device: str, gpus: float) -> str:
    """Name the device of a trial that gets that many GPUs.

    Raises:
        ConfigError: If the two contradict each other.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"the cluster chooses the GPU: --device auto, cpu or cuda, not {device}")
    if device == "cuda" and not gpus:
        raise ConfigError("--device cuda on a cluster needs --gpus-per-trial")
    if device == "cpu" and gpus:
        raise ConfigError(f"--device cpu has no use for --gpus-per-trial {gpus:g}")
    return "cuda" if gpus else "cpu"
