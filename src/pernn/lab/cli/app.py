"""The verbs together, and what an exception means on the command line."""

import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, get_args, get_origin

import typer
from typer import Argument, Option
from typer.models import OptionInfo

import pernn
from pernn.errors import PernnError, StoreError, one_line

from .options import EXIT_STATUSES, INTERRUPTED, Launch, exit_status, warn

# Typer ships its own Click and exports only some of its exceptions: this is BadParameter's base.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="pernn",
    epilog="Exit statuses: " + "; ".join(f"{n} {text}" for n, text in EXIT_STATUSES.items()) + ".",
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
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Position-encoded recurrent networks: rerun the study, trust its numbers, extend it."""


VERBS = {
    "list": "look:list_experiments",
    "show": "look:show",
    "prepare": "run:prepare",
    "register": "results:register",
    "run": "run:run",
    "train": "run:train",
    "status": "look:status",
    "resume": "run:resume",
    "pause": "run:pause",
    "report": "results:report",
    "compare": "results:compare",
    "cite": "results:cite",
    "analyze": "results:analyze",
    "errors": "results:errors",
    "sample": "results:sample",
    "publish": "results:publish",
    "export": "results:export",
    "prune": "results:prune",
    "doctor": "look:doctor",
}
"""Verb → file and function; a file is imported only when its verb may be needed."""


def register(arguments: Sequence[str]) -> None:
    """Add the verb that is called.

    All of them where none is: help, completion, a misspelling.
    """
    called = arguments[0] if arguments else ""
    for verb in [called] if called in VERBS else VERBS:
        module, _, function = VERBS[verb].partition(":")
        found = getattr(import_module(f".{module}", __package__), function)
        text = re.sub(r"\n\nArgs:\n(?: {4}.*(?:\n|$))+", "\n", inspect.getdoc(found) or "")
        # Examples are not wrapped.
        text = text.replace("\n\nExample", "\n\n\b\nExample")
        app.command(verb, help=text, short_help=text.partition("\n")[0])(command(found))


def command(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Make a verb ready for Typer.

    Its `launch` is taken apart, and the `Args` of docstrings are help.
    """
    found, helps = dict(inspect.signature(verb, eval_str=True).parameters), read_helps(verb)
    launch: list[str] = []
    if "launch" in found:
        options = inspect.signature(Launch, eval_str=True).parameters
        # `Annotated[Launch, …]` names the options that the verb has.
        names = get_args(found.pop("launch").annotation)[1:]
        launch = [name for name in options if name in (names or options)]
        found |= {name: options[name] for name in launch}
        helps |= read_helps(Launch)
    parameters = [_declare(one, helps.get(name)) for name, one in found.items()]

    @wraps(verb)
    def call(**values: Any) -> Any:
        if launch:
            values["launch"] = Launch(**{name: values.pop(name) for name in launch})
        return verb(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _declare(one: inspect.Parameter, said: str | None) -> inspect.Parameter:
    """Return a parameter as Typer takes it; what has no default is an argument."""
    hint = one.annotation
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    info = copy(more[0]) if more else Argument() if one.default is one.empty else Option()
    info.help = info.help or said
    if isinstance(info, OptionInfo) and info.default is ...:
        info.param_decls = (f"--{one.name.replace('_', '-')}",)  # without --no-…
    return one.replace(annotation=Annotated[kind, info], kind=one.KEYWORD_ONLY)


def read_helps(documented: Any) -> dict[str, str]:
    """Return what a docstring says of arguments or attributes."""
    text = inspect.getdoc(documented) or ""
    _, _, block = re.sub(r"\n(Args|Attributes):\n", "\0", text, count=1).partition("\0")
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", block, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def run() -> int:
    """Run the verb, and say in one line what went wrong."""
    for stream in (sys.stdout, sys.stderr):
        # A sign that the locale's encoding lacks is a question mark, and no error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    # A part of one's own may be a file here; what is installed comes first.
    sys.path.append("")
    try:
        words = sys.argv[1:] or ["--help"]
        register(words)
        status: int = app(words, standalone_mode=False) or 0
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except PernnError as error:
        warn(str(error))
        return exit_status(type(error))
    except UsageError as error:
        error.message = one_line(error.message)  # type: ignore[attr-defined]
        error.show()  # type: ignore[attr-defined]
        return 2
    except BrokenPipeError:
        # The reader of a pipe left: nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A file at the edge of all that is guarded, such as a path that is too long.
        warn(one_line(": ".join(str(one) for one in (error.strerror, error.filename) if one)))
        return exit_status(StoreError)
    if status == INTERRUPTED:
        warn("interrupted; the same command goes on from here")
    return status
