"""Which runner is meant: the one place where options become one."""

from typing import Any

from pernn.errors import ConfigError
from pernn.runners import Limits, LocalRunner, RayRunner, Runner, SlurmRunner

from .options import number_of_jobs, read_duration

HERE = {"--force": "force", "--oversubscribe": "oversubscribe"}
CLUSTER = {"--jobs": "jobs", "--gpus-per-trial": "gpus_per_trial"}
OPTIONS: dict[str, dict[str, str]] = {
    "local": {"--jobs": "jobs", **HERE},
    "inline": HERE,
    "ray": {**CLUSTER, "--cpus-per-trial": "cpus_per_trial", "--address": "address"},
    "slurm": {
        **CLUSTER,
        "--cpus-per-trial": "cpus_per_trial",
        "--partition": "partition",
        "--job-time": "time_limit",
        "--trials-per-job": "trials_per_job",
        "--no-wait": "wait",
    },
}
"""Runner → the options that concern it → what they are there; threads and device concern all."""


def choose_runner(
    name: str, *, threads: int, device: str, limits: Limits, given: dict[str, Any]
) -> Runner:
    """Make the runner that was asked for.

    Args:
        name: `local`, `inline`, `ray` or `slurm`.
        threads: CPU threads of each trial.
        device: As for `execute`.
        limits: When to leave before all is done.
        given: Option → value, `None` or `False` where it was not given.

    Raises:
        ConfigError: If an option does not concern this runner, or a value is invalid.
    """
    wanted = {
        option: value for option, value in given.items() if value is not None and value is not False
    }
    for option in wanted:
        if option not in OPTIONS[name]:
            users = ", ".join(one for one, options in OPTIONS.items() if option in options)
            raise ConfigError(f"{option} does not concern --runner {name} (only {users}): omit it")
    values = {OPTIONS[name][option]: value for option, value in wanted.items()}
    if name == "inline":
        # The only one that computes in this process, and so loads torch into it.
        from pernn.runners import InlineRunner

        return InlineRunner(device=device, threads=threads, limits=limits)
    if name == "ray":
        return RayRunner(device=device, threads=threads, limits=limits, **values)
    if name == "slurm":
        values["wait"] = "wait" not in values
        if "time_limit" in values:
            values["time_limit"] = int(read_duration(values["time_limit"]) // 60)
        return SlurmRunner(device=device, threads=threads, limits=limits, **values)
    return LocalRunner(
        jobs=number_of_jobs(values.get("jobs"), threads),
        device=device,
        threads=threads,
        limits=limits,
    )
