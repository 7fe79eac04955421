"""Trials as jobs of a SLURM cluster, through submitit: a job array, requeued when time is up."""

import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError, MachineError, StoreError, counted
from pernn.ownership import make_private
from pernn.runs import RunSpec
from pernn.store import storing

from .cluster import DriverFolder, JournalWatch, device_of_trial, run_orders
from .runner import Limits, OnEvent, make_order, require_counts
from .schedule import Schedule, drive

if TYPE_CHECKING:
    from submitit import Job
    from submitit.core.utils import DelayedSubmission

WAIT_SECONDS = 0.5
SIGNAL_SECONDS = 90
"""Time before its limit at which a job is told to checkpoint."""

NUM_REQUEUES = 10_000
"""Times that a job may run into its limit: each time its trials get further."""

ARRAY_SIZE = 1000
"""Jobs of one array; SLURM allows 1001 unless it is told otherwise."""

STOP = "stop"
"""File in a driver's folder that tells its jobs to checkpoint and leave."""

STOP_SECONDS = 0.5


@dataclass(frozen=True)
class SlurmRunner:
    """Runs trials as jobs of SLURM, each with one or more trials in turn.

    Attributes:
        partition: SLURM's partition; its default if absent.
        time_limit: Minutes after which SLURM takes a job's machine away; the job is requeued.
        jobs: Jobs of an array that may run at a time; SLURM decides if absent.
        device: `auto`, `cpu` or `cuda`; SLURM chooses which.
        threads: CPU threads of each trial.
        cpus_per_trial: CPUs of a job; as many as threads if absent.
        gpus_per_trial: GPUs of a job, 0 or 1.
        trials_per_job: Trials that a job carries out in turn.
        wait: Stay until all is done; else the jobs are left to themselves.
        executor: `slurm`, or submitit's `local` for processes of this machine.
        limits: When to leave before all is done.

    Raises:
        ConfigError: If these contradict each other.
    """

    partition: str | None = None
    time_limit: int = 60
    jobs: int | None = None
    device: str = "auto"
    threads: int = 1
    cpus_per_trial: float | None = None
    gpus_per_trial: float = 0
    trials_per_job: int = 1
    wait: bool = True
    executor: str = "slurm"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        device_of_trial(self.device, self.gpus_per_trial)
        if self.gpus_per_trial not in (0, 1) or (self.cpus_per_trial or 1) % 1:
            raise ConfigError(
                "SLURM gives whole CPUs and GPUs, and a trial uses at most one GPU, got "
                f"{self.cpus_per_trial or 1:g} and {self.gpus_per_trial:g}"
            )
        if not self.wait and (self.limits.seconds, self.limits.trials) != (None, None):
            raise ConfigError("--no-wait is incompatible with --time-limit and --max-trials")
        counts = ("jobs", "threads", "cpus_per_trial", "trials_per_job", "time_limit")
        require_counts(**{name: getattr(self, name) for name in counts})
        if self.time_limit * 60 <= SIGNAL_SECONDS:
            raise ConfigError(
                f"a job has to checkpoint {SIGNAL_SECONDS} s before its limit: allow 2 minutes"
            )

    def describe(self) -> str:
        """Return where trials run."""
        return (
            f"in jobs of {counted(self.trials_per_job, 'trial')} on {self.executor}, "
            f"{counted(self.threads, 'thread')} and {self.gpus_per_trial:g} GPU each"
        )

    def run(self, specs: Sequence[RunSpec], root: Path, on_event: OnEvent) -> None:
        """Run every trial to its end, or only submit the jobs.

        Raises:
            MachineError: If submitit or SLURM is missing, or refuses the jobs.
            StoreError: If the results directory cannot be written.
            KeyboardInterrupt: After a signal, when every running trial is checkpointed.
        """
        if find_spec("submitit") is None:
            raise MachineError("the package submitit is missing: pip install 'pernn[slurm]'")
        if self.executor == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise MachineError(
                "no SLURM here (sbatch and srun are not on the PATH): submit from a login node, "
                "or use --runner local"
            )
        folder = DriverFolder(root)
        schedule = Schedule(specs, folder.root, self.limits, on_event)
        jobs = _Jobs(self, folder, schedule)
        if not self.wait:
            while trial := schedule.next():
                jobs.start(*trial)
            jobs.submit()
            return
        try:
            drive(jobs, schedule)
        finally:
            if jobs.sent:
                # They read in the folder that they are to leave.
                jobs.stop()
            else:
                folder.remove()


class SlurmJob:
    """What a job does; submitit calls `checkpoint` shortly before the job's time is up.

    The trials have a thread of their own, so that the main thread is free to hear signals: SIGTERM
    and SIGUSR1 checkpoint and leave, submitit's own (SIGUSR2) checkpoints and requeues.
    """

    def __init__(self, folder: str, orders: Sequence[Mapping[str, Any]]) -> None:
        self.folder, self.orders = folder, list(orders)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "orders": self.orders}

    def __call__(self) -> None:
        """Run the trials to their ends, or to checkpoints if told to leave."""
        self.leaving = threading.Event()
        self.errors: list[Exception] = []
        self.looked = float("-inf")
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda number, frame: self.leaving.set())
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        self.thread.join()
        for error in self.errors:
            raise error

    def checkpoint(self) -> "DelayedSubmission":
        """Have the running trial checkpoint; return what is to be done after the requeue."""
        from submitit.helpers import DelayedSubmission

        self.leaving.set()
        self.thread.join()
        return DelayedSubmission(SlurmJob(self.folder, self.orders))

    def _run(self) -> None:
        try:
            run_orders(self.folder, self.orders, self._may_go_on)
        except Exception as error:  # noqa: BLE001 raised again in the main thread
            self.errors.append(error)

    def _may_go_on(self) -> bool:
        now = time.monotonic()
        if now - self.looked > STOP_SECONDS:
            self.looked = now
            if (Path(self.folder) / STOP).exists():
                self.leaving.set()
        return not self.leaving.is_set()


def _make_trusted(folder: Path, root: Path) -> None:
    """Make the folder of what jobs unpickle; nobody else may write there or replace it."""
    with storing(folder):
        try:
            make_private(folder)
            make_private(folder.parent)
        except PermissionError as error:
            raise StoreError(
                f"{error}: jobs execute what lies there, choose another --results"
            ) from None
        for parent in (folder.parent.parent, root):
            mode = parent.stat().st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise StoreError(
                    f"{parent} can be written by everybody, and jobs execute what lies below it: "
                    f"chmod o-w {parent}"
                )


class _Jobs:
    """The jobs of one sweep, through submitit."""

    def __init__(self, runner: SlurmRunner, folder: DriverFolder, schedule: Schedule) -> None:
        from submitit import AutoExecutor

        self.runner, self.folder, self.schedule = runner, folder, schedule
        self.device = device_of_trial(runner.device, runner.gpus_per_trial)
        self.watch = JournalWatch(schedule.root, schedule.on_event)
        self.pending: list[tuple[RunSpec, dict[str, Any]]] = []
        self.sent: list[tuple[Job[None], list[RunSpec]]] = []
        place = folder.path / "submitit"
        _make_trusted(place, folder.root)
        self.executor = AutoExecutor(
            folder=place,
            cluster=runner.executor,
            **{f"{runner.executor}_max_num_timeout": NUM_REQUEUES},
        )
        self.executor.update_parameters(
            name="pernn",
            timeout_min=runner.time_limit,
            cpus_per_task=int(runner.cpus_per_trial or runner.threads),
            gpus_per_node=int(runner.gpus_per_trial),
            slurm_signal_delay_s=SIGNAL_SECONDS,
            slurm_array_parallelism=runner.jobs or ARRAY_SIZE,
        )
        if runner.partition is not None:
            self.executor.update_parameters(slurm_partition=runner.partition)

    def has_room(self) -> bool:
        """Leave the queueing to SLURM; processes of this machine run as many as were asked for."""
        room = (self.runner.jobs or 1) - len(self.sent)
        return (
            self.runner.executor == "slurm" or len(self.pending) < room * self.runner.trials_per_job
        )

    def start(self, spec: RunSpec, expired: Mapping[str, str]) -> None:
        """Have a trial submitted with the next array."""
        root, threads = self.schedule.root, self.runner.threads
        order = make_order(spec, root, device=self.device, threads=threads, expired=expired)
        self.watch.begin(order["run"])
        self.pending.append((spec, order))

    def submit(self) -> None:
        """Submit what is pending, as arrays of jobs."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        size = self.runner.trials_per_job
        batches = [self.pending[i : i + size] for i in range(0, len(self.pending), size)]
        self.pending = []
        for first in range(0, len(batches), ARRAY_SIZE):
            some = batches[first : first + ARRAY_SIZE]
            made = [SlurmJob(str(self.folder.path), [order for _, order in one]) for one in some]
            try:
                jobs = self.executor.submit_array(made)
            except (FailedJobError, FailedSubmissionError) as error:
                reason = str(error).strip().partition("\n")[0]
                raise MachineError(f"SLURM refuses the jobs: {reason}") from None
            specs = ([spec for spec, _ in one] for one in some)
            self.sent += zip(jobs, specs, strict=True)

    def look(self) -> None:
        """See from their files how trials get on, and how those of jobs that are over ended."""
        self.submit()
        over = [(job, specs) for job, specs in self.sent if job.done()]
        self.watch.look(self.schedule.running)
        for job, specs in over:
            self.sent.remove((job, specs))
            self._settle(job, specs)
        if not over:
            time.sleep(WAIT_SECONDS)

    def _settle(self, job: "Job[None]", specs: Sequence[RunSpec]) -> None:
        """Tell how a job's trials ended, and put back those that are to be run again."""
        ends = [self.watch.find_end(spec) for spec in specs]
        lost = [spec for spec, end in zip(specs, ends, strict=True) if end is None]
        if lost and not any(end is not None and end.state == "stopped" for end in ends):
            # A job runs its trials in turn: the first without an end was the one it was at.
            reason = f"with SLURM job {job.job_id}: {job.state}; see {job.paths.stderr}"
            self.schedule.die(lost.pop(0).fingerprint(), reason)
        for spec in lost:
            del self.schedule.running[spec.fingerprint()]
        self.schedule.put_back(lost)
        for end in ends:
            if end is not None:
                self.schedule.end(end)

    def stop(self) -> None:
        """Tell running jobs by a file, and have SLURM drop those that wait."""
        for spec, _ in self.pending:
            del self.schedule.running[spec.fingerprint()]
        self.pending = []
        (self.folder.path / STOP).touch()
        if self.runner.executor == "slurm" and self.sent:
            identifiers = [job.job_id for job, _ in self.sent]
            subprocess.run(["scancel", "--state=PENDING", *identifiers], check=False)
