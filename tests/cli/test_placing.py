"""Which runner is meant by which options."""

import pytest

from pernn.cli.placing import OPTIONS, choose_runner
from pernn.errors import ConfigError
from pernn.runners import InlineRunner, Limits, LocalRunner, RayRunner, SlurmRunner

NONE_GIVEN = dict.fromkeys(option for options in OPTIONS.values() for option in options)
LIMITS = Limits()


def choose(name, **given):
    options = {f"--{option.replace('_', '-')}": value for option, value in given.items()}
    return choose_runner(name, threads=2, device="auto", limits=LIMITS, given=NONE_GIVEN | options)


def test_each_runner_gets_what_was_given():
    assert choose("local", jobs=3).describe() == LocalRunner(jobs=3, threads=2).describe()
    assert choose("inline") == InlineRunner(threads=2, limits=LIMITS)
    assert choose("ray") == RayRunner(threads=2, limits=LIMITS)
    assert choose(
        "ray", address="host:1", jobs=9, gpus_per_trial=0.25, cpus_per_trial=0.5
    ) == RayRunner("host:1", 9, "auto", 2, cpus_per_trial=0.5, gpus_per_trial=0.25, limits=LIMITS)
    assert choose("slurm", no_wait=False).wait
    assert choose(
        "slurm", jobs=4, partition="gpu", job_time="4h", trials_per_job=10, gpus_per_trial=1.0,
        cpus_per_trial=4.0, no_wait=True,
    ) == SlurmRunner(
        "gpu", 240, 4, "auto", 2, cpus_per_trial=4, gpus_per_trial=1, trials_per_job=10, wait=False,
        limits=LIMITS,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (name, option, "auto" if option in ("--address", "--partition") else 0)
        for name in OPTIONS
        for option in NONE_GIVEN
        if option not in OPTIONS[name]
    ],
)
def test_what_does_not_concern_the_runner_is_refused(name, option, value):
    with pytest.raises(ConfigError, match=f"^{option} does not concern --runner {name} "):
        choose_runner(
            name, threads=1, device="auto", limits=LIMITS, given=NONE_GIVEN | {option: value}
        )
