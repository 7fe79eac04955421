"""Run directories as pernn writes them, with made-up numbers."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

from pernn.errors import StoreError
from pernn.runs import RunSpec
from pernn.store import RunDirectory, flatten, read_status


def spec(seed: int, core: str = "gru") -> RunSpec:
    """A small trial."""
    return RunSpec.load(
        {
            "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 32},
            "core": {"kind": core, "hidden_size": 8},
            "seed": seed,
        }
    )


def begin(root: Path, one: RunSpec) -> RunDirectory:
    """A run that was begun and killed."""
    run = RunDirectory(root, one.fingerprint())
    run.path.mkdir(parents=True, exist_ok=True)
    (run.path / "spec.json").unlink(missing_ok=True)
    run.write_spec(one.dump())
    run.note("started", update=0)
    return run


def finish(root: Path, one: RunSpec, noise: random.Random) -> RunDirectory:
    """A run with a result."""
    run = begin(root, one)
    run.note("finished", update=one.num_updates, updates=one.num_updates, seconds=0.5)
    metrics = {"loss": noise.expovariate(1), "token_accuracy": noise.random()}
    run.write_result(
        {
            "fingerprint": run.fingerprint,
            "metrics": metrics,
            "num_parameters": noise.randrange(10**6),
            "weights_sha256": f"{noise.getrandbits(256):064x}",
            "tables": {
                "by_update": {"update": [one.num_updates], **{k: [metrics[k]] for k in metrics}}
            },
        }
    )
    return run


def expected(root: Path) -> dict[str, Any]:
    """What an index of these directories must hold, read in the plain way."""
    found = {}
    for path in sorted((root / "runs").glob("*")):
        status = read_status(root, path.name)
        run, spec_, result = RunDirectory(root, path.name), {}, {}
        with suppress(StoreError):
            spec_ = flatten(run.read_spec() or {})
        with suppress(StoreError):
            result = run.read_result() or {}
        found[path.name] = (
            (status.standing, status.update, status.event),
            spec_,
            result.get("metrics", {}),
            result.get("num_parameters"),
        )
    return found


def indexed_values(connection: Any) -> dict[str, Any]:
    """What an index holds, in the same form."""
    found = {}
    sql = 'SELECT run, standing, "update", event, num_parameters FROM runs ORDER BY run'
    for run, *standing, size in connection.execute(sql):
        pairs = [
            dict(connection.execute(sql, (run,)))
            for sql in (
                "SELECT path, value FROM settings WHERE run = ?",
                "SELECT name, value FROM metrics WHERE run = ?",
            )
        ]
        found[run] = (tuple(standing), *pairs, size)
    return found
