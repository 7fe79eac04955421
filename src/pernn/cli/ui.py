"""`pernn ui`."""

import tempfile
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import ConfigError
from pernn.live import Live, serve

from .options import RESULTS, IgnorePublished, Results, published_folder, warn


def ui(
    results: Results = RESULTS,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of this machine; 0 for any free one.")
    ] = 0,
    ignore_published: IgnorePublished = False,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve a live page of all sweeps, until Ctrl-C.

    Only this machine can open it, at an address that nobody can guess, and it changes nothing.
    Needs the extra `ui`.

    Example: pernn ui --open
    """
    if not results.is_dir():
        raise ConfigError(f"no results in {results.absolute()}: start with `pernn run`")

    def begun(address: str) -> None:
        typer.echo(f"Serving {results} on {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    with tempfile.TemporaryDirectory() as folder:
        live = Live(results, Path(folder), published_folder(ignore=ignore_published), warn)
        with suppress(KeyboardInterrupt):
            serve(live, port, begun)
