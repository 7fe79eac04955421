"""The command line in processes of its own, without an interpreter's start for each.

`call` runs one command in a child of a process that has imported everything once and computed
nothing: exit status, streams, signals and memory are those of a real process. Tests of the start
itself (what is imported, how a Ctrl-C arrives) begin an interpreter instead.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

# Bound before any test: what a test starts ends with it, and the server serves them all.
from subprocess import PIPE, CompletedProcess, Popen
from typing import Any, NoReturn

TIMEOUT_SECONDS = 240


def call(
    *words: object, cwd: Path | None = None, columns: int = 200, **variables: str
) -> CompletedProcess[str]:
    """Run `pernn` with some words, on a terminal so wide, with variables of its environment."""
    arguments = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("out", "err")]
        request = {
            "words": arguments,
            "cwd": str(cwd or Path.cwd()),
            "environment": {**os.environ, "COLUMNS": str(columns), **variables},
            "streams": [str(path) for path in streams],
        }
        status = _Server.only().ask(request)
        out, err = (path.read_text(errors="surrogateescape") for path in streams)
    return CompletedProcess(["pernn", *arguments], status, out, err)


def succeed(*words: object, **options: Any) -> CompletedProcess[str]:
    done = call(*words, **options)
    assert done.returncode == 0, done.stderr
    return done


def python(*words: object, **options: Any) -> CompletedProcess[str]:
    """Run an interpreter of its own, for what `call` has done already."""
    arguments = [sys.executable, *map(str, words)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)


class _Server:
    """The process that forks; it ends with its standard input."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = Popen([sys.executable, __file__], stdin=PIPE, stdout=PIPE, text=True)
        atexit.register(self.close)

    @staticmethod
    @cache
    def only() -> "_Server":
        return _Server()

    def close(self) -> None:
        self.process.communicate(timeout=TIMEOUT_SECONDS)

    def ask(self, request: dict[str, object]) -> int:
        with self.lock:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            child = int(self.process.stdout.readline())
            # Its whole group: a worker that outlives it would keep the streams' folder busy.
            killer = threading.Timer(TIMEOUT_SECONDS, os.killpg, (child, signal.SIGKILL))
            killer.start()
            try:
                return int(self.process.stdout.readline())
            finally:
                killer.cancel()


def _serve() -> None:
    import matplotlib.backends.backend_svg  # noqa: F401
    import rich.table  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch.optim  # noqa: F401
    import typer.rich_utils  # noqa: F401

    import pernn.lab.runners.local  # noqa: F401
    from pernn.lab import experiments, reports, runs
    from pernn.lab.cli.app import VERBS

    _ = runs.execute  # imported on its first use, as are experiments and verbs
    for name in experiments.CATALOGUE:
        experiments.find_experiment(name)
    for place in VERBS.values():
        import_module(f"pernn.lab.cli.{place.partition(':')[0]}")
    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401

    # No test of commands looks at the other formats, which take half of a report's time.
    reports.FORMATS = ("svg",)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> NoReturn:
    from pernn.lab.cli import main

    os.setpgid(0, 0)
    os.chdir(request["cwd"])
    sys.path[:0] = filter(None, request["environment"].get("PYTHONPATH", "").split(os.pathsep))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in enumerate(request["streams"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["pernn", *request["words"]]
    status = 70
    try:
        main()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001  # an interpreter would print it too
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
