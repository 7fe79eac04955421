"""The command line: verbs that run, that look, and that use results."""

import signal
import sys
from types import FrameType
from typing import NoReturn

from pernn.errors import install_command

LAB = ("pydantic", "typer", "rich")
"""Packages of the laboratory that the command itself imports."""


class _Interrupted(KeyboardInterrupt):
    """Unlike its parent, not remembered by Python, which would end `python -m` by SIGINT."""


def main() -> None:
    """Run the command line and leave with its exit status."""
    if sys.platform == "win32":
        sys.stderr.write("pernn: pernn.lab needs Linux or macOS\n")
        raise SystemExit(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        # Takes a second, in which one may think better of it.
        from .app import run

        status = run()
    except ModuleNotFoundError as error:
        if error.name not in LAB:
            raise
        sys.stderr.write(f"pernn: this needs {error.name}: {install_command('lab')}\n")
        status = 1
    except KeyboardInterrupt:
        sys.stderr.write("pernn: interrupted\n")
        status = 130
    raise SystemExit(status)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Treat what queues send as Ctrl-C: checkpoint and leave."""
    raise _Interrupted
