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

from pernn.errors import ConfigError, MachineError, StoreError
from pernn.ownership import make_private
from pernn.runs import RunSpec
from pernn.store import storing

from .dispatch import Ended, device_of_job, dispatch
from .jobs import JobFolder, carry, ends_among
from .leaving import Limits
from .runner import Hear, TrialEvent

if TYPE_CHECKING:
    from submitit import Job
    from submitit.core.utils import DelayedSubmission

WAIT_SECONDS, BUSY_SECONDS = 1.0, 60.0
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
        device_of_job(self.device, self.gpus_per_trial)
        if self.gpus_per_trial not in (0, 1) or (self.cpus_per_trial or 1) % 1:
            raise ConfigError(
                "SLURM gives whole CPUs and GPUs, and a trial uses at most one GPU, got "
                f"{self.cpus_per_trial or 1:g} and {self.gpus_per_trial:g}"
            )
        if not self.wait and (self.limits.seconds, self.limits.trials) != (None, None):
            raise ConfigError(
                "who does not wait keeps no --time-limit or --max-trials: omit --no-wait"
            )
        counts = (self.time_limit, self.jobs, self.threads, self.cpus_per_trial)
        if any(count is not None and count < 1 for count in (*counts, self.trials_per_job)):
            raise ConfigError(
                "time limit, jobs, threads, CPUs per trial and trials per job must be at least 1"
            )
        if self.time_limit * 60 <= SIGNAL_SECONDS:
            raise ConfigError(
                f"a job has to checkpoint {SIGNAL_SECONDS} s before its limit: allow 2 minutes"
            )

    def describe(self) -> str:
        """Say where trials run."""
        return (
            f"in jobs of {self.trials_per_job} trial(s) on {self.executor}, {self.threads} "
            f"thread(s) and {self.gpus_per_trial:g} GPU each"
        )

    def run(self, specs: Sequence[RunSpec], root: Path, hear: Hear) -> None:
        """Carry every trial to its end, or only submit the jobs.

        Raises:
            MachineError: If submitit or SLURM is missing, or refuses the jobs.
            StoreError: If the results directory cannot be written.
        """
        if find_spec("submitit") is None:
            raise MachineError("the package submitit is missing: pip install 'pernn[slurm]'")
        if self.executor == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise MachineError(
                "no SLURM here (sbatch and srun are not on the PATH): submit from a login node, "
                "or use --runner local"
            )
        folder = JobFolder(root)
        cluster = _Slurm(self, folder)
        device = device_of_job(self.device, self.gpus_per_trial)
        if not self.wait:
            size = self.trials_per_job
            batches = [specs[first : first + size] for first in range(0, len(specs), size)]
            cluster.send([folder.order(batch, device, self.threads) for batch in batches])
            return
        try:
            dispatch(
                cluster,
                specs,
                folder,
                hear,
                device=device,
                threads=self.threads,
                trials_per_job=self.trials_per_job,
                busy_seconds=BUSY_SECONDS,
                limits=self.limits,
            )
        finally:
            if cluster.sent:
                # They read their orders in the folder, and that they are to leave.
                cluster.stop()
            else:
                folder.remove()


class SlurmJob:
    """What a job does; submitit calls `checkpoint` shortly before the job's time is up.

    The trials have a thread of their own, so that the main thread is free to hear signals: SIGTERM
    and SIGUSR1 checkpoint and leave, submitit's own (SIGUSR2) checkpoints and requeues.

    Args:
        order: What to carry out, as plain values.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.order = dict(order)

    def __getstate__(self) -> dict[str, Any]:
        return {"order": self.order}

    def __call__(self) -> None:
        """Carry the trials to their ends, or to checkpoints if told to leave."""
        self.leaving = threading.Event()
        self.errors: list[Exception] = []
        self.looked = float("-inf")
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda number, frame: self.leaving.set())
        self.thread = threading.Thread(target=self._carry)
        self.thread.start()
        self.thread.join()
        for error in self.errors:
            raise error

    def checkpoint(self) -> "DelayedSubmission":
        """Have the running trial checkpoint, and give what is to be done after the requeue."""
        from submitit.helpers import DelayedSubmission

        self.leaving.set()
        self.thread.join()
        return DelayedSubmission(SlurmJob(self.order))

    def _carry(self) -> None:
        try:
            carry(self.order, self._may_go_on)
        except Exception as error:  # noqa: BLE001 raised again in the main thread
            self.errors.append(error)

    def _may_go_on(self) -> bool:
        now = time.monotonic()
        if now - self.looked > STOP_SECONDS:
            self.looked = now
            if (Path(self.order["folder"]) / STOP).exists():
                self.leaving.set()
        return not self.leaving.is_set()


def _make_trusted(folder: Path, root: Path) -> None:
    """Make the folder of what jobs unpickle; nobody else may write there or put another in place.

    Raises:
        StoreError: If somebody else could.
    """
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


class _Slurm:
    """Jobs through submitit.

    Args:
        runner: What was asked for.
        folder: The driver's folder; submitit keeps its own files there, too.
    """

    def __init__(self, runner: SlurmRunner, folder: JobFolder) -> None:
        from submitit import AutoExecutor

        self.runner, self.folder = runner, folder
        self.sent: dict[str, Job[None]] = {}
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

    def room(self) -> int:
        """Leave the queueing to SLURM; processes of this machine run as many as were asked for."""
        if self.runner.executor == "slurm":
            return 2**31
        return self.runner.jobs or 1

    def send(self, orders: Sequence[Mapping[str, Any]]) -> None:
        """Submit jobs as arrays.

        Raises:
            MachineError: If SLURM refuses them.
        """
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        for first in range(0, len(orders), ARRAY_SIZE):
            some = orders[first : first + ARRAY_SIZE]
            try:
                jobs = self.executor.submit_array([SlurmJob(order) for order in some])
            except (FailedJobError, FailedSubmissionError) as error:
                reason = str(error).strip().partition("\n")[0]
                raise MachineError(f"SLURM refuses the jobs: {reason}") from None
            self.sent |= {order["job"]: job for order, job in zip(some, jobs, strict=True)}

    def ended(self) -> Sequence[Ended]:
        """Give the jobs that are over; what their trials came to stands in the jobs' files."""
        over = []
        for name, job in list(self.sent.items()):
            if job.done():
                del self.sent[name]
                reason = f"SLURM job {job.job_id} ended as {job.state}; see {job.paths.stderr}"
                over.append(Ended(name, ends_among(self._all_told(name)), reason))
        if not over:
            time.sleep(WAIT_SECONDS)
        return over

    def _all_told(self, job: str) -> list[TrialEvent]:
        return JobFolder(self.folder.root, self.folder.path).news(job)

    def stop(self) -> None:
        """Tell running jobs by a file, and have SLURM drop those that wait."""
        (self.folder.path / STOP).touch()
        if self.runner.executor == "slurm" and self.sent:
            identifiers = [job.job_id for job in self.sent.values()]
            subprocess.run(["scancel", "--state=PENDING", *identifiers], check=False)
