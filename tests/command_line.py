"""The command line in processes of its own, without an interpreter's start for each.

`call` runs one command in a child of a process that has imported everything once and computed
nothing: exit status, streams, signals and memory are those of a real process. Tests of the start
itself (what is imported, how a Ctrl-C arrives) begin an interpreter instead.
"""

import atexit
import json
import os
import signal
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

# Bound before any test: what a test starts ends with it, and the server serves them all.
from subprocess import PIPE, CompletedProcess, Popen

TIMEOUT_SECONDS = 240


def call(
    *words: object, cwd: Path | None = None, columns: int = 200, **variables: str
) -> CompletedProcess[str]:
    """Run `pernn` with some words and return its status and what it printed.

    Args:
        words: What follows `pernn` on the command line.
        cwd: Where it runs; here if absent.
        columns: Width of its terminal.
        variables: Further variables of its environment.
    """
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
    import matplotlib.figure  # noqa: F401
    import torch.optim  # noqa: F401

    import pernn.cli.app
    import pernn.experiments
    import pernn.reports
    import pernn.runs  # noqa: F401
    from pernn.reports import more_figures, page

    # No test of commands looks at the other formats, which take half of a report's time.
    more_figures.FORMATS = page.FORMATS = ("svg",)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, object]) -> None:
    from pernn.cli.app import run

    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in enumerate(request["streams"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["pernn", *request["words"]]
    status = 70
    try:
        status = run()
    except BaseException:  # noqa: BLE001  # an interpreter would print it too
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
