"""Room for a sweep: what was estimated against what a real one took, and what is refused."""

import os
import re
from pathlib import Path

import pytest

from pernn.errors import ConfigError, MachineError
from pernn.runners import Capacity, LocalRunner, TrialEvent, check_cores, measure_capacity
from pernn.runners.capacity import measure_free_memory, show_bytes
from pernn.runs import RunSpec, estimate_footprint
from pernn.runs.footprint import count_checkpoints
from pernn.store import RunDirectory
from runners.test_runners import workers_of

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 64, "length": 16, "num_held_out": 64},
        "core": {"kind": "gru", "hidden_size": 64},
        "encoding": {"kind": "sinusoidal", "size": 64},
        "embedding_size": 64,
        "training": {
            "iterations": 44,
            "batch_size": 64,
            "log_interval": 5,
            "evaluation_interval": 10,
            "checkpoint_interval": 5,
        },
    }
)
LARGE = SPEC.override(
    {
        "task.vocab_size": 1024,
        "core.kind": "lstm",
        "core.hidden_size": 256,
        "training.keep_interval": 15,
    }
)
SPECS = [SPEC, LARGE]


@pytest.mark.slow
def test_a_real_sweep_takes_what_was_estimated(tmp_path: Path) -> None:
    peaks: list[int] = []

    def hear(event: TrialEvent) -> None:
        if event.kind == "finished":
            (worker,) = workers_of(os.getpid())
            status = Path(f"/proc/{worker}/status").read_text()
            peaks.append(1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1]))

    LocalRunner(device="cpu").run(SPECS, tmp_path, hear)
    for spec, peak in zip(SPECS, peaks, strict=True):
        directory = RunDirectory(tmp_path, spec.fingerprint())
        estimate = estimate_footprint(spec)
        assert len(directory.checkpoints.updates()) == count_checkpoints(spec)
        disk = sum(path.stat().st_size for path in directory.path.rglob("*") if path.is_file())
        print(f"disk {estimate.disk / disk:.2f}, memory {estimate.memory / peak:.2f}")
        assert estimate.disk == pytest.approx(disk, rel=0.1)
        # The second trial has the first one's process, whose needs are small beside its own.
        assert estimate.memory == pytest.approx(peak, rel=0.3)
    again = measure_capacity(SPECS, 1, tmp_path)
    assert again.free_disk > measure_capacity(SPECS, 1, tmp_path / "new").free_disk


def test_jobs_count_by_the_largest(tmp_path: Path) -> None:
    one, two = (measure_capacity(SPECS, jobs, tmp_path / "new") for jobs in (1, 2))
    small, large = map(estimate_footprint, SPECS)
    assert (one.memory, two.memory) == (large.memory, small.memory + large.memory)
    assert one.disk == small.disk + large.disk + large.draft
    assert two.disk == one.disk + small.draft
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("interval", [None, 2, 3, 5, 6, 44, 100])
@pytest.mark.parametrize("iterations", [1, 4, 5, 9, 10, 11, 60])
def test_checkpoints_are_counted_as_they_are_kept(interval: int | None, iterations: int) -> None:
    values = {"training.iterations": iterations, "training.keep_interval": interval}
    spec = SPEC.override(values)
    kept: list[int] = []
    for update in range(1, iterations + 1):
        if update % 5 == 0 or update == iterations:
            kept.append(update)
            old, latest = kept[:-2], kept[-2:]
            kept = [one for one in old if interval and one % interval == 0] + latest
    assert count_checkpoints(spec) == len(kept)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"disk": 3_500_000_000}, "1.5 GB too little; choose another --results"),
        ({"memory": 5_000_000_000}, "3 GB too little; use fewer --jobs"),
    ],
)
def test_what_does_not_fit_is_refused_by_how_much(values: dict[str, int], said: str) -> None:
    fits = {"disk": 1, "memory": 1, "free_disk": 2 * 10**9, "free_memory": 2 * 10**9}
    Capacity(**fits).check()
    with pytest.raises(MachineError, match=re.escape(said)) as caught:
        Capacity(**{**fits, **values}).check()
    assert "--force" in str(caught.value)


def test_no_more_threads_than_cores_unless_asked() -> None:
    check_cores(2, 2, 4)
    with pytest.raises(ConfigError, match="need 6 cores, and this process may use 4"):
        check_cores(3, 2, 4)


def test_free_memory_is_less_than_there_is() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < measure_free_memory() < total


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (999, "999 B"), (1_234, "1.23 kB"), (5e13, "50 TB")]
)
def test_bytes_are_said_for_people(count: float, said: str) -> None:
    assert show_bytes(count) == said
