"""Every scenario that a sweep has to survive, at full length, one after another.

    python benchmarks/fire.py [--minutes 40] [--only random_kills]

A scenario that does not end in the time that is left is killed and counts as failed. What is
counted is printed; the exit status is the number of scenarios that failed.
"""

import multiprocessing
import os
import signal
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated

import typer
from scenarios import SCENARIOS, Counts
from turns import print_table


def run(name: str, directory: Path, answer: Connection) -> None:
    """Run a scenario in a process group of its own, and send what it counted."""
    os.setsid()
    try:
        answer.send(SCENARIOS[name](directory))
    except BaseException as error:  # noqa: BLE001 whatever it is, it is the scenario's outcome
        answer.send({"failed": f"{type(error).__name__}: {error}"[:500]})


def attempt(name: str, seconds: float) -> Counts:
    """Run a scenario, at most so long."""
    context = multiprocessing.get_context("spawn")
    answer, end = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="pernn-fire-", ignore_cleanup_errors=True) as folder:
        process = context.Process(target=run, args=(name, Path(folder), end))
        process.start()
        end.close()
        begun = time.monotonic()
        found: Counts = {"failed": f"not done in {seconds / 60:.0f} minutes"}
        try:
            if answer.poll(seconds):
                found = answer.recv()
            process.join(timeout=10)
        except EOFError:
            found = {"failed": "its process died"}
        finally:
            took = round(time.monotonic() - begun)
            if process.is_alive():
                with suppress(ProcessLookupError):  # it has no group of its own yet
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
            process.join()
    return {"took, s": took, **found}


def main(minutes: float = 40.0, only: Annotated[list[str] | None, typer.Option()] = None) -> None:
    """Run every scenario, or those that are named, in these minutes."""
    if unknown := {*(only or ())} - {*SCENARIOS}:
        raise typer.BadParameter(f"{unknown}: none of {', '.join(SCENARIOS)}")
    # Told to end, it ends what it began, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    deadline, failed = time.monotonic() + 60 * minutes, 0
    for name in only or SCENARIOS:
        print(f"{name} …", flush=True)
        found = attempt(name, max(1.0, deadline - time.monotonic()))
        print_table({"scenario": name, "count": key, "value": str(n)} for key, n in found.items())
        failed += "failed" in found
    raise typer.Exit(failed)


if __name__ == "__main__":
    typer.run(main)
