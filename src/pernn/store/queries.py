"""Questions in SQL: asked of a process of their own, so that their bounds hold."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pernn import errors
from pernn.errors import ConfigError


def query(
    root: Path,
    statement: str | None,
    *,
    sweep: str | None,
    published: Path | None = None,
    seconds: float = 60.0,
) -> Iterator[list[Any]]:
    """Yield the names of the columns of an answer, then its rows, as they come.

    Closing the iterator ends the query.

    Args:
        root: Results directory.
        statement: A SELECT of DuckDB; `None` asks which tables there are.
        sweep: The sweep that is asked; `None` for all of them, told apart by a column.
        published: Folder of published trials, which count as finished; `None` to count none.
        seconds: Time that DuckDB may take.

    Raises:
        ConfigError: If the statement is not valid, would do more than read or exceeds a bound, or
            there is no such sweep.
        MachineError: If DuckDB is missing.
        StoreError: If the results cannot be read.
    """
    try:
        (statement or "").encode()
    except UnicodeError:
        raise ConfigError("SQL: not text in UTF-8") from None
    request = {"root": str(root), "sweep": sweep, "statement": statement, "seconds": seconds}
    request["published"] = None if published is None else str(published)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "pernn.store.query_process", json.dumps(request)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Ctrl-C is for this process, which then ends that one.
        process_group=0,
    ) as process:
        try:
            for line in process.stdout or ():
                found = json.loads(line)
                if isinstance(found, dict):
                    raise getattr(errors, found["error"])(found["message"])
                yield found
            status = process.wait()
        finally:
            process.kill()
    if status == -signal.SIGALRM:
        raise ConfigError(
            f"the query took longer than {seconds:g} s and was stopped: ask for less, or allow "
            "more with --seconds"
        )
    if status:
        raise ConfigError(
            f"the query ended without an answer (exit status {status}): it may have needed too "
            "much memory; ask for less"
        )
