"""One run's directory and state: the contract of docs/run_directory.md."""

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pernn.errors import BusyError, ConfigError, CorruptError, StoreError, one_line, show_time
from pernn.lab.config import InvalidConfigError, checksum

from .checkpoints import CheckpointFolder
from .files import (
    FORMAT,
    MAX_RESULT_BYTES,
    check_format,
    iterate_lines,
    make_directory,
    read_json_if_any,
    read_whole,
    refuse_links,
    sealed,
    storing,
    sync,
    to_json,
    write_atomically,
)
from .lease import (
    LOCK,
    NO_LOCKS,
    PATTERN,
    Lease,
    claim,
    lock_state,
    look,
    this_boot_id,
)

Table = dict[str, list[str | int | float | None]]


def _equally_long(table: Table) -> Table:
    if len({len(cells) for cells in table.values()}) > 1:
        raise ValueError("columns must be equally long")
    return table


EvenTable = Annotated[Table, AfterValidator(_equally_long)]


class Diverged(BaseModel):
    """After which update a run diverged, and why."""

    model_config = ConfigDict(strict=True, extra="ignore")

    update: int
    reason: str


class Result(BaseModel):
    """The values that records are made of, among others."""

    model_config = ConfigDict(strict=True, extra="ignore")

    metrics: dict[str, float]
    tables: dict[str, EvenTable] = {}
    num_parameters: int | None = None
    weights_sha256: str | None = None
    diverged: Diverged | None = None


def check_values(model: type[BaseModel], values: Mapping[str, Any]) -> None:
    """Check the types of values as they were read."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        raise InvalidConfigError(model, error) from None


SPEC, ENVIRONMENT, RESULT = "spec.json", "environment.json", "result.json"
NUM_LOCK_TRIES, LOCK_SECONDS = 10, 0.02
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
METRICS, JOURNAL = "metrics.jsonl", "journal.jsonl"


class RunDirectory:
    """Files of one run, named by the fingerprint of its spec.

    Deterministic: `spec.json`, `metrics.jsonl`, `checkpoints/`, `result.json`. About this machine
    and this day: `environment.json`, `journal.jsonl`.

    Args:
        root: Results directory.
        fingerprint: 16 hexadecimal digits.

    Raises:
        ConfigError: If the fingerprint is not one.
    """

    def __init__(self, root: Path, fingerprint: str) -> None:
        if not FINGERPRINT.fullmatch(fingerprint):
            raise ConfigError(f"a run is named by 16 hexadecimal digits, got {fingerprint[:40]!r}")
        self.fingerprint = fingerprint
        self.path = root / "runs" / fingerprint
        self._lease: Lease | None = None
        self._metrics_end: int | None = None

    @cached_property
    def checkpoints(self) -> CheckpointFolder:
        """The checkpoints, written under this directory's lease."""
        return CheckpointFolder(self.path / "checkpoints", self._writing)

    @contextmanager
    def locked(self, expired: str = "") -> Iterator[None]:
        """Be the run's only writer within the block.

        Other hosts, which may not see the lock, see the lease; of `expired` `claim` tells.

        Raises:
            BusyError: If another process holds it.
            StoreError: If the directory cannot be written, or leads elsewhere.
        """
        files = (self.path / name for name in (LOCK, METRICS, JOURNAL))
        refuse_links(self.path.parent, self.path, self.checkpoints.path, *files)
        with storing(self.path):
            make_directory(self.path)
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            locked = self._acquire(descriptor)
            self._lease = claim(self.path, locked=locked, expired=expired)
            self._metrics_end = None
            try:
                for remains in self.path.glob(".*.partial"):
                    remains.unlink(missing_ok=True)
                yield
            finally:
                self._lease.release()
                self._lease = None
        finally:
            os.close(descriptor)

    def _acquire(self, descriptor: int) -> bool:
        """Take the lock, if there are locks here; who looks at the status has it for a moment."""
        for _ in range(NUM_LOCK_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOCK_SECONDS)
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise StoreError(f"{self.path / LOCK}: {error.strerror}") from error
                return False
            else:
                return True
        found, _ = look(self.path)
        who = "another process" if found is None or found.released else found.holder
        raise BusyError(f"{self.path}: {who} is working on this run")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Guard a write: who lost the lease leaves, before it or by an error that came of it."""
        self._require_held()
        try:
            yield
        except StoreError:
            self._require_held()
            raise

    def _require_held(self) -> None:
        """Raise BusyError if the lease is lost: the last look before a file changes."""
        # What is opened before it is opened before whoever takes the run over sweeps up drafts and
        # replaces the metrics: a change after it then fails, or comes into a file that is gone.
        if self._lease is not None:
            self._lease.check()

    def _replace(self, name: str, content: bytes) -> None:
        with self._writing():
            write_atomically(self.path / name, content, self._require_held)

    def write_spec(self, spec: Mapping[str, Any]) -> None:
        """Write the spec, or check that the stored one is equal."""
        if self.read_spec() is None:
            content = {"format": FORMAT, "fingerprint": self.fingerprint, "spec": spec}
            self._replace(SPEC, to_json(content))

    def read_spec(self) -> dict[str, Any] | None:
        """Read the spec as plain values, or `None` before it began.

        It is refused if its digest is not the fingerprint of this run.
        """
        path = self.path / SPEC
        values = read_json_if_any(path)
        if values is None:
            return None
        check_format(path, values)
        spec = values.get("spec")
        if values.get("fingerprint") != self.fingerprint or not isinstance(spec, dict):
            raise CorruptError(f"{path}: not the spec of run {self.fingerprint}")
        if not checksum(spec).startswith(self.fingerprint):
            raise CorruptError(
                f"{path} was changed since the run began: restore it, or delete the "
                "directory to begin again"
            )
        return spec

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        """Record the machine that the run began on."""
        self._replace(ENVIRONMENT, to_json(sealed(environment)))

    def read_environment(self) -> dict[str, Any] | None:
        """Read the machine that the run began on."""
        return read_json_if_any(self.path / ENVIRONMENT)

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Write one line of metrics at its place in the file.

        Two processes that take each other for dead then write the same bytes to the same places.
        """
        line = to_json(record, indent=None)
        with self._writing(), self._metrics() as (descriptor, end):
            if not line.startswith(os.pread(descriptor, len(line), end)):
                raise _changed(self.path / METRICS)
            _require_all(os.pwrite(descriptor, line, end), line)
            self._metrics_end = end + len(line)

    def metrics_so_far(self) -> dict[str, Any]:
        """Return the metrics for a checkpoint to keep."""
        with self._writing(), self._metrics() as (descriptor, end):
            os.fsync(descriptor)
            return {"metrics": os.pread(descriptor, end, 0).decode()}

    def restore_metrics(self, state: Mapping[str, Any]) -> str:
        """Go back to the metrics of a checkpoint, or to none.

        Returns what was wrong with the file and is mended; empty if nothing was.
        """
        path, wrong = self.path / METRICS, ""
        content = read_whole(path) if path.exists() else b""
        before = state["metrics"].encode() if state else b""
        if not content.startswith(before):
            wrong = one_line(f"{path} lacks the {len(before)} bytes that were measured before")
        self._begin_metrics(before)
        return wrong

    def _begin_metrics(self, content: bytes) -> int:
        """Put a new file, of this length, in place of the one that who lost the run has open."""
        self._replace(METRICS, content)
        self._metrics_end = len(content)
        return self._metrics_end

    @contextmanager
    def _metrics(self) -> Iterator[tuple[int, int]]:
        """Open the metrics; gives a descriptor and where the next line belongs."""
        path, end = self.path / METRICS, self._metrics_end
        if end is None:
            # A last line that a kill cut short is dropped.
            content = read_whole(path) if path.exists() else b""
            end = self._begin_metrics(content[: content.rfind(b"\n") + 1])
        with storing(path), path.open("r+b", buffering=0) as file:
            self._require_held()
            if os.fstat(file.fileno()).st_size < end:
                # A line beyond the end would leave a hole.
                raise _changed(path)
            yield file.fileno(), end

    def metrics(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of metrics, one in memory at a time."""
        for number, line in enumerate(iterate_lines(self.path / METRICS), 1):
            if type(line.get("update")) is not int:
                raise CorruptError(f"{self.path / METRICS}, line {number}: has no update")
            yield line

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read all lines of metrics."""
        return list(self.metrics())

    def note(self, event: str, **details: Any) -> None:
        """Add a line to the journal, which is no result."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "process": os.getpid(), **details}
        path, content = self.path / JOURNAL, to_json(line, indent=None)
        with self._writing(), storing(path), path.open("ab+") as file:
            self._require_held()
            if file.tell():
                # A kill can cut the last line short: end it, unreadable, before the next.
                file.seek(-1, os.SEEK_END)
                content = content if file.read(1) == b"\n" else b"\n" + content
            else:
                sync(self.path)
            _require_all(os.write(file.fileno(), content), content)

    def note_failure(self, reason: str, error: str = "") -> None:
        """Add a failure to the journal, even before the run began."""
        refuse_links(self.path.parent, self.path, self.path / JOURNAL)
        with storing(self.path):
            make_directory(self.path)
        self.note("failed", reason=reason, error=error)

    def read_journal(self) -> list[dict[str, Any]]:
        """Read the journal without damaged lines."""
        return [*iterate_lines(self.path / JOURNAL, strict=False)]

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result, last of all: its presence means done."""
        self._replace(RESULT, to_json(sealed({"format": FORMAT, **result})))

    def read_result(self) -> dict[str, Any] | None:
        """Read the result, or `None` if there is none yet."""
        path = self.path / RESULT
        try:
            values = read_json_if_any(path, MAX_RESULT_BYTES)
            if values is None:
                return None
            check_format(path, values)
            check_values(Result, values)
        except (CorruptError, ValueError) as error:
            what = str(error).removeprefix(f"{path}: ")
            raise CorruptError(f"{path}: {what}: delete it to have it made anew") from None
        if values.get("fingerprint") != self.fingerprint:
            raise CorruptError(f"{path}: not the result of run {self.fingerprint}: delete it")
        return values


def _changed(path: Path) -> CorruptError:
    return CorruptError(
        f"{path}: changed while this process was writing it: run the same command again, which "
        "restores it from the newest checkpoint"
    )


def _require_all(num_written: int, content: bytes) -> None:
    """Raise OSError after a write that took a part: a disk all but full does not complain."""
    if num_written < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def is_done(root: Path, run: str) -> bool:
    """Return whether a run has a result, without reading it."""
    return (RunDirectory(root, run).path / RESULT).exists()


def list_runs(root: Path) -> list[str]:
    """List the runs of a results directory by their fingerprints."""
    folder = root / "runs"
    if not folder.is_dir():
        return []
    with storing(folder):
        names = [path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    return sorted(name for name in names if FINGERPRINT.fullmatch(name))


TAIL = 2**16
"""Bytes at the end of `metrics.jsonl` in which its last whole line stands."""
SILENT_SECONDS = 600.0
"""Age of a lease's newest sign of life beyond any difference between two hosts' clocks."""
RunState = Literal["finished", "running", "stopped", "waiting", "failed", "damaged"]
"""In the order in which they are counted for a reader."""


@dataclass(frozen=True)
class RunStatus:
    """State of one run.

    Attributes:
        run: Its fingerprint.
        state: `running` while a process holds it; `stopped` if it can be taken up again.
        update: Newest checkpoint, or the end.
        reason: Why it diverged, failed, stopped or is damaged, or who on another host holds it.
    """

    run: str
    state: RunState
    update: int = 0
    reason: str = ""


def read_status(root: Path, run: str) -> RunStatus:
    """Return where a run stands."""
    directory = RunDirectory(root, run)
    try:
        result = directory.read_result()
        if result is not None:
            lost, end = result.get("diverged"), 0
            with suppress(LookupError, TypeError, ValueError):
                end = int(lost["update"] if lost else result["tables"]["by_update"]["update"][-1])
            reason = f"diverged: {lost['reason']}" if lost else ""
            return RunStatus(run, "finished", end, reason)
        if not directory.path.is_dir():
            return RunStatus(run, "waiting")
        begun = directory.read_spec() is not None
        update = max(directory.checkpoints.updates(), default=0)
        if lock_state(directory.path / LOCK):
            return RunStatus(run, "running", update)
        lease, _ = look(directory.path)
        if lease is not None and not lease.released and lease.boot_id != this_boot_id():
            # Whether it lives shows only in time: whoever takes the run up will find out.
            beat = (directory.path / PATTERN.format(lease.term)).stat().st_mtime
            if time.time() - beat < max(SILENT_SECONDS, lease.seconds):
                return RunStatus(run, "running", update, f"held by {lease.holder}")
            since = datetime.fromtimestamp(beat).astimezone().isoformat(" ", "minutes")
            return RunStatus(run, "stopped", update, f"no sign of {lease.holder} since {since}")
        last = (directory.read_journal() or [{}])[-1]
        reason = one_line(str(last.get("reason", "")))
        if last.get("event") == "failed":
            return RunStatus(run, "failed", update, reason)
        return RunStatus(run, "stopped", update, reason) if begun else RunStatus(run, "waiting")
    except (StoreError, OSError) as error:
        return RunStatus(run, "damaged", reason=str(error))


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    update: int  # updates done, as far as its files say
    total: int  # updates of its training; 0 if unknown
    rate: float | None  # updates per second since it was started or resumed; `None` if unknown

    @property
    def seconds_left(self) -> float | None:
        """Estimate the time to the end of the training."""
        return max(0, self.total - self.update) / self.rate if self.rate and self.total else None

    def __str__(self) -> str:
        of, left = f" of {self.total:,}" if self.total else "", show_time(self.seconds_left)
        return f"{self.update:,}{of}{left and f', {left} left'}"


def read_progress(root: Path, status: RunStatus) -> Progress:
    """Return the progress of a begun run, unknown where unreadable."""
    directory = RunDirectory(root, status.run)
    measured, now = _last_measured(directory.path / METRICS)
    update, total, rate = max(measured, status.update), 0, None
    with suppress(StoreError, OSError, LookupError, TypeError, ValueError):
        total = (directory.read_spec() or {})["training"]["iterations"]
        journal = directory.read_journal()
        begun = [line for line in journal if line.get("event") in ("started", "resumed")]
        elapsed = now - datetime.fromisoformat(begun[-1]["time"]).timestamp()
        fresh = update - int(begun[-1]["update"])
        rate = fresh / elapsed if elapsed > 0 and fresh > 0 else None
    return Progress(update, total, rate)


def read_update(root: Path, run: str) -> int:
    """Return a run's number of updates, by its files."""
    directory = RunDirectory(root, run)
    measured, _ = _last_measured(directory.path / METRICS)
    return max(measured, max(directory.checkpoints.updates(), default=0))


def seconds_left(statuses: Sequence[RunStatus], running: Sequence[Progress]) -> float | None:
    """Estimate a sweep's time to its end, at the present pace.

    Trials that have not begun are taken to be as long as those that run.
    """
    rate = sum(one.rate or 0 for one in running)
    if not rate:
        return None
    length = sum(one.total for one in running) / len(running)
    left: float = sum(max(0, one.total - one.update) for one in running)
    left += sum(
        max(0, length - one.update) for one in statuses if one.state not in ("finished", "running")
    )
    return left / rate


def _last_measured(path: Path) -> tuple[int, float]:
    """Return the update of the last whole line of metrics, and when it was written."""
    with suppress(OSError, ValueError, KeyError, TypeError), path.open("rb") as file:
        found = os.fstat(file.fileno())
        file.seek(max(0, found.st_size - TAIL))
        line = file.read().split(b"\n")[-2:][0]
        return int(json.loads(line)["update"]), found.st_mtime
    return 0, 0.0
