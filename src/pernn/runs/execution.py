"""Carry a run to its end: new, resumed or already done."""

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.errors import CorruptError, MachineError, StoreError, TrialError
from pernn.kernels import describe_kernels, find_kernels, without_kernels
from pernn.store import Checkpoint, RunDirectory, registering
from pernn.training import (
    CheckpointDue,
    Measured,
    TrainState,
    advance,
    choose_device,
    computing,
    evaluate,
)

from .assembly import Trial
from .environment import describe_environment
from .limits import check_memory
from .outcome import Listener, Outcome
from .spec import RunSpec
from .stages import build_stage, wait_for


def execute(
    spec: RunSpec,
    root: Path,
    *,
    device: str = "auto",
    threads: int = 1,
    listener: Listener = lambda update: True,
    warn: Callable[[str], None] = warnings.warn,
) -> Outcome:
    """Carry a run to its end from wherever it stands.

    The same spec gives the same bits on the same machine, whatever was killed in between. A run
    goes on with the threads and on the kind of device that it began with.

    Args:
        spec: What to run.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run; their number can change the last bits.
        listener: Hears of progress and may stop the run.
        warn: Told in one line what was wrong but could be mended.

    Raises:
        BusyError: If another process works on the run.
        MachineError: If the device is missing, or the trial cannot fit into the memory.
        StoreError: If the directory cannot be read or written.
        TrialError: If the loss is no longer a number.
    """
    directory = RunDirectory(root, spec.fingerprint())
    result = directory.read_result()
    if result is not None:
        return Outcome("already done", result)
    chosen = choose_device(device)
    check_memory(spec, chosen)
    first = spec.first_stage()
    if first is not None:

        def carry_first() -> bool:
            outcome = execute(
                first, root, device=device, threads=threads, listener=listener, warn=warn
            )
            return outcome.status != "stopped"

        if not wait_for(carry_first, lambda: listener(0)):
            return Outcome("stopped", None)
    with registering(root, directory.fingerprint), directory.locked(lambda: listener(0)):
        directory.write_spec(spec.dump())
        started = _read_start(directory)
        torch.set_num_threads(threads if started is None else started["threads"])
        if started is not None:
            _check_device(started, chosen, directory)
        with _kernels_of(started, directory):
            return _carry_locked(spec, directory, started, root, chosen, listener, warn)


def _carry_locked(
    spec: RunSpec,
    directory: RunDirectory,
    started: Mapping[str, Any] | None,
    root: Path,
    device: torch.device,
    listener: Listener,
    warn: Callable[[str], None],
) -> Outcome:
    """Carry on a run whose directory is locked and whose earlier stage is finished."""
    first = spec.first_stage()
    if first is not None and spec.analysis is not None:
        from .analysing import carry_analysis

        if started is None:
            directory.write_environment(describe_environment(device))
        with computing("fp32", device):
            return carry_analysis(spec, first, directory, root, device, listener)
    trial = build_stage(spec, root, device)
    # Read from files, data could be others than they were.
    data = getattr(trial.stream, "digest", None)
    environment = describe_environment(device) | ({"data_sha256": data} if data else {})
    if started is None:
        directory.write_environment(environment)
    else:
        _check_data(started, data, directory)
    state = TrainState.fresh(trial.model, trial.protocol)
    _restore(directory, state, started, environment, warn)
    try:
        with computing(spec.training.precision, device):
            return _carry_on(spec, directory, trial, state, device, listener)
    except TrialError as error:
        directory.note("failed", update=state.update, reason=str(error))
        raise


def _read_start(directory: RunDirectory) -> Mapping[str, Any] | None:
    """Read how a run began; `None` if it did not. Without that nobody knows its bits."""
    started = directory.read_environment()
    if started is None:
        if not directory.checkpoints.updates():
            return None
        what = "is missing"
    elif isinstance(started.get("device"), str) and started.get("threads") in range(1, 2**16):
        return started
    else:
        what = "does not say device and threads"
    raise CorruptError(
        f"{directory.path / 'environment.json'} {what}: restore it, or delete the run directory to "
        "begin again"
    )


def _check_device(started: Mapping[str, Any], device: torch.device, run: RunDirectory) -> None:
    before = started["device"].partition(":")[0]
    if before != device.type:
        raise MachineError(
            f"{run.path}: this run began on {before} and would not end in the same bits on "
            f"{device.type}: resume with --device {before}, or delete the directory"
        )


def _kernels_of(
    started: Mapping[str, Any] | None, run: RunDirectory
) -> AbstractContextManager[None]:
    """Go on as the run began: sums of kernels and of PyTorch are ordered differently."""
    before = "" if started is None else str(started.get("kernels", ""))
    if before.startswith("torch"):
        return without_kernels()
    if before and find_kernels() is None:
        raise MachineError(
            f"{run.path}: this run began with compiled kernels, and here it is "
            f"{describe_kernels()}: `pernn doctor` says what is missing; or delete the directory"
        )
    return nullcontext()


def _check_data(started: Mapping[str, Any], data: str | None, run: RunDirectory) -> None:
    before = started.get("data_sha256")
    if before != data:
        raise StoreError(
            f"{run.path}: this run began on data with SHA-256 {before}, now it is {data}: bring "
            "the old data back, or delete the directory to begin again"
        )


def _restore(
    directory: RunDirectory,
    state: TrainState,
    started: Mapping[str, Any] | None,
    environment: Mapping[str, Any],
    warn: Callable[[str], None],
) -> None:
    """Go back to the newest sound checkpoint, or to the beginning."""
    checkpoint, complaints = directory.checkpoints.load_latest()
    for complaint in complaints:
        directory.note("damaged checkpoint set aside", reason=complaint)
        warn(f"damaged checkpoint set aside, the run goes on from an earlier state: {complaint}")
    if checkpoint is not None:
        state.restore(checkpoint.arrays, checkpoint.update)
    directory.restore_metrics({} if checkpoint is None else checkpoint.state)
    changed = {
        key: [started.get(key), value]
        for key, value in environment.items()
        if started is not None and started.get(key) != value
    }
    event = "started" if started is None else "resumed"
    directory.note(event, update=state.update, **({"changed": changed} if changed else {}))


def _carry_on(
    spec: RunSpec,
    directory: RunDirectory,
    trial: Trial,
    state: TrainState,
    device: torch.device,
    listener: Listener,
) -> Outcome:
    begun, resumed = time.perf_counter(), state.update
    before = spec.num_updates - spec.training.iterations
    for event in advance(state, trial.stream, spec.training, trial.protocol, device):
        if isinstance(event, Measured):
            directory.append_metrics({"update": event.update, "kind": event.kind, **event.values})
        elif isinstance(event, CheckpointDue):
            _save(directory, state, spec.training.keep_interval)
        elif not listener(before + event.update):
            _save(directory, state, spec.training.keep_interval)
            directory.note("stopped", update=state.update)
            return Outcome("stopped", None)
    found = evaluate(state.network, trial.stream, device, spec.training.precision)
    seconds = time.perf_counter() - begun
    result = {
        "fingerprint": directory.fingerprint,
        "metrics": dict(found.metrics),
        "tables": {
            **{name: dict(table) for name, table in found.tables.items()},
            "by_update": _learning_curve(directory, state.update, found.metrics),
        },
        "num_parameters": trial.model.num_parameters,
        "weights_sha256": weights_digest(state.dump()),
    }
    directory.write_result(result)
    directory.note("finished", update=state.update, updates=state.update - resumed, seconds=seconds)
    return Outcome("finished", result)


def _learning_curve(
    directory: RunDirectory, last: int, metrics: Mapping[str, float]
) -> dict[str, list[float]]:
    """Give all evaluations on the held-out sequences, the final one included, as a table."""
    lines = [line for line in directory.read_metrics() if line["kind"] == "test"]
    lines.append({"update": last, **metrics})
    percent = [round(100 * line["update"] / last) for line in lines]
    columns = {name: [line[name] for line in lines] for name in ("update", *metrics)}
    return {"percent": percent, **columns}


def _save(directory: RunDirectory, state: TrainState, keep_interval: int | None) -> None:
    """Write a checkpoint, which never holds what is no number: the last good one stays."""
    arrays = state.dump()
    state.check(arrays)
    position = directory.metrics_position()
    directory.checkpoints.save(Checkpoint(state.update, arrays, position))
    directory.checkpoints.prune(keep_interval)


def weights_digest(arrays: Mapping[str, Shaped[np.ndarray, "..."]]) -> str:
    """Give the SHA-256 of all model tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith("model."):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
