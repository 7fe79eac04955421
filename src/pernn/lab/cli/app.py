"""The verbs together, and what an exception means on the command line."""

import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

import pernn
from pernn.errors import PernnError, StoreError, one_line

from .options import EXIT_STATUSES, INTERRUPTED, command, exit_status

# Typer ships its own Click and exports only some of its exceptions: this is BadParameter's base.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="pernn",
    help="Position-encoded recurrent networks: rerun the study, trust its numbers, extend it.",
    epilog="Exit statuses: " + "; ".join(f"{n} {text}" for n, text in EXIT_STATUSES.items()) + ".",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Its tables cut what is long, and wrap docstrings a second time.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pernn {pernn.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Position-encoded recurrent networks: rerun the study, trust its numbers, extend it."""


VERBS = {
    "list": "look:list_experiments",
    "show": "look:show",
    "prepare": "data:prepare",
    "register": "results:register",
    "run": "run:run",
    "train": "run:train",
    "status": "look:status",
    "resume": "run:resume",
    "pause": "run:pause",
    "report": "results:report",
    "compare": "results:compare",
    "cite": "results:cite",
    "analyze": "data:analyze",
    "errors": "data:errors",
    "sample": "data:sample",
    "publish": "results:publish",
    "evidence": "results:evidence",
    "export": "results:export",
    "prune": "data:prune",
    "doctor": "look:doctor",
}
"""Verb → file and function; a file is imported only when its verb may be needed."""


def help_of(verb: Callable[..., Any]) -> str:
    """Return a verb's docstring without `Args`, its examples unwrapped."""
    text = re.sub(r"\n\nArgs:\n(?: {4}.*(?:\n|$))+", "\n", inspect.getdoc(verb) or "")
    return text.replace("\n\nExample", "\n\n\b\nExample")


def register(arguments: Sequence[str]) -> None:
    """Add the verb that is called.

    All of them where none is: help, completion, a misspelling.
    """
    called = arguments[0] if arguments else ""
    wanted = [called] if called in VERBS else list(VERBS)
    for verb in wanted:
        module, _, function = VERBS[verb].partition(":")
        found = getattr(import_module(f".{module}", __package__), function)
        text = help_of(found)
        app.command(verb, help=text, short_help=text.partition("\n")[0])(command(found))


def run() -> int:
    """Run the verb, and say in one line what went wrong."""
    # A part of one's own may be a file here; what is installed comes first.
    sys.path.append("")
    try:
        status = _call(sys.argv[1:])
        sys.stdout.flush()
    except PernnError as error:
        typer.echo(f"pernn: {error}", err=True)
        return exit_status(type(error))
    except UsageError as error:
        error.message = one_line(error.message)  # type: ignore[attr-defined]
        error.show()  # type: ignore[attr-defined]
        return 2
    except BrokenPipeError:
        # The reader of a pipe left: nothing more to say, and nothing to flush at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A file at the edge of all that is guarded, such as a path that is too long.
        typer.echo(f"pernn: {one_line(f'{error.strerror}: {error.filename}')}", err=True)
        return exit_status(StoreError)
    if status == INTERRUPTED:
        typer.echo("pernn: interrupted; the same command goes on from here", err=True)
    return status


def _call(arguments: Sequence[str]) -> int:
    """Run the verb and give its status; Typer makes some of them exceptions."""
    try:
        register(arguments)
        status = app(standalone_mode=False)
    except typer.Exit as leaving:
        return leaving.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return status if isinstance(status, int) else 0
