"""Settings of all tests: one thread, the same examples every time, and no process left behind."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

import shape_checks  # noqa: F401  # before anything of pernn

torch.set_num_threads(1)

settings.register_profile(
    "pernn",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pernn")
# Of `make test-all`.
settings.register_profile("thorough", settings.get_profile("pernn"), max_examples=100)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture(scope="session", autouse=True)
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of prepared corpora for all tests, so that each is prepared once.

    Nor is anything published: reading this repository's evidence would cost every command time.
    """
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERNN_DATA", str(root))
        patch.setenv("PERNN_EVIDENCE", str(root / "none"))
        yield root


@pytest.fixture
def generator() -> torch.Generator:
    """A generator of known seed, so that no test depends on another."""
    return torch.Generator().manual_seed(20240201)


@pytest.fixture(scope="module")
def one_format() -> Iterator[None]:
    """Draw figures as SVG only: the other formats take most of the time, and have tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pernn.lab.reports.FORMATS", ("svg",))
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C works in tests and what they start, also under `nohup`, `setsid` and cron."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what a test has started and, since it failed, not ended."""
    started: list[subprocess.Popen[str]] = []

    class Remembered(subprocess.Popen):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Remembered)
    yield
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
