"""One trial, in whichever process: to its end or a checkpoint, with the reason if it fails."""

import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pernn.errors import BusyError, ConfigError, PernnError, StoreError
from pernn.runs import RunSpec
from pernn.store import RunDirectory

from .runner import OnEvent, TrialEvent


def make_order(
    spec: RunSpec, root: Path, *, device: str, threads: int, expired: Mapping[str, str]
) -> dict[str, Any]:
    """Return as plain values what `run_order` needs; the arguments are those of `run_trial`."""
    return {
        "run": spec.fingerprint(),
        "spec": spec.dump(),
        "root": str(root),
        "device": device,
        "threads": threads,
        "expired": dict(expired),
    }


def run_order(
    order: Mapping[str, Any], on_event: OnEvent, may_go_on: Callable[[], bool]
) -> TrialEvent:
    """Run the trial of an order in this process; return how it ended."""
    root = Path(order["root"])
    try:
        spec = RunSpec.load(order["spec"])
    except ConfigError as error:
        # A part of another package that the driver has and this process has not.
        return _failure(order["run"], root, error)
    more = {name: order[name] for name in ("device", "threads", "expired")}
    return run_trial(spec, root, on_event, may_go_on=may_go_on, **more)


def run_trial(
    spec: RunSpec,
    root: Path,
    on_event: OnEvent,
    *,
    device: str,
    threads: int,
    may_go_on: Callable[[], bool] = lambda: True,
    expired: Mapping[str, str] | None = None,
) -> TrialEvent:
    """Run one trial to its end, or to a checkpoint where it may not go on.

    Returns:
        How it ended; `running` if another process works on it.
    """
    # Only where trials run is torch needed.
    from pernn.runs import execute

    run = spec.fingerprint()

    def on_update(update: int) -> bool:
        on_event(TrialEvent("running", run, update))
        return may_go_on()

    on_event(TrialEvent("running", run))
    try:
        outcome = execute(
            spec,
            root,
            device=device,
            threads=threads,
            on_update=on_update,
            warn=lambda message: on_event(TrialEvent("running", run, message=message)),
            expired=expired,
        )
    except Exception as error:  # noqa: BLE001 whatever a part raises, the other trials go on
        return _failure(run, root, error)
    return TrialEvent(outcome.state, run, spec.num_updates, elsewhere=not outcome.is_new)


def journal_failure(root: Path, event: TrialEvent) -> None:
    """Write into a run's journal why it failed, if anything can be written there."""
    with suppress(StoreError):
        RunDirectory(root, event.run).note_failure(event.message, event.error)


def _failure(run: str, root: Path, error: Exception) -> TrialEvent:
    """Return how an attempt ended in an error; what pernn did not foresee is logged whole."""
    name = type(error).__name__
    if isinstance(error, BusyError):
        return TrialEvent("running", run, message=str(error), error=name, elsewhere=True)
    message, first = str(error), str(error).partition("\n")[0]
    if not isinstance(error, PernnError):
        with suppress(OSError):
            # The disk on which the log lies may be what is full.
            traceback.print_exception(error)
        message = f"{name}: {first}"
    event = TrialEvent("failed", run, message=message, error=name)
    journal_failure(root, event)
    return event
