"""Leases: who may write a run, across hosts without shared locks.

`lease-000001.json` is a term. Claiming the next one takes the run over; the holder of an older one
notices before it writes. The holder changes its file again and again, and an observer takes it for
dead when the file has not changed for long by the observer's own clock: no clock is ever compared
with another one.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from pernn.errors import BusyError, ConfigError, CorruptError, one_line

from .files import storing

VARIABLE = "PERNN_LEASE_SECONDS"
SECONDS, SHORTEST_SECONDS, LONGEST_SECONDS = 60.0, 0.1, 24 * 3600.0
NUM_BEATS = 6
"""Changes of the file in the time of a lease."""
NUM_READ_TRIES = 10
SIZE = 512
"""Bytes of a lease, so that it is always rewritten in place."""
PATTERN = "lease-{:06d}.json"
NAME = re.compile(r"lease-(\d{6}|[1-9]\d{6,17})\.json", re.ASCII)
LOCK = "lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(frozen=True)
class Holding:
    """The content of a lease."""

    # Anything may stand in a file; what does is shown to people.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    term: int  # its number; the newest counts
    owner: str = ""  # random name of the holder
    host: Annotated[str, AfterValidator(one_line)] = "an unknown host"
    process: int = 0
    boot_id: str = ""  # start of that host's system, or its name: what a file lock reaches
    # How long the file may stay as it is before the holder is taken for dead; 0 if not known, then
    # as long as the observer's own.
    seconds: Annotated[float, Field(ge=SHORTEST_SECONDS, le=LONGEST_SECONDS)] = 0.0
    heartbeat: int = 0  # how often the holder has said that it lives
    released: bool = False

    @property
    def holder(self) -> str:
        """Process and host, for people."""
        return f"process {self.process} on {self.host}"

    def content(self) -> bytes:
        """Return the file's bytes, equally many however often it has beaten."""
        return json.dumps(asdict(self)).encode().ljust(SIZE - 1) + b"\n"


_HOLDING = TypeAdapter(Holding)


class Lease:
    """This process's term, renewed by a thread until released."""

    def __init__(self, folder: Path, holding: Holding) -> None:
        self._folder, self._holding = folder, holding
        # A directory that was deleted and begun anew has a file of the same name.
        self._mark = holding.content()[: holding.content().index(b', "host"')]
        self._path = folder / PATTERN.format(holding.term)
        self._next = folder / PATTERN.format(holding.term + 1)
        self._leaving = Event()
        self._beating = Thread(target=self._beat, name=f"lease {holding.term}", daemon=True)
        self._beating.start()

    def check(self) -> None:
        """Raise BusyError if somebody took the run over."""
        with suppress(OSError), self._path.open("rb") as file:
            if file.read(SIZE).startswith(self._mark) and not self._next.exists():
                return
        found, _ = look(self._folder)
        other = found.holder if found is not None else "nobody known: its file was deleted"
        raise BusyError(f"{self._folder}: lost the lease to {other}; this process leaves the run")

    def release(self) -> None:
        """Release the run."""
        self._leaving.set()
        self._beating.join()
        with suppress(OSError):
            self._write(replace(self._holding, released=True))

    def _beat(self) -> None:
        while not self._leaving.wait(self._holding.seconds / NUM_BEATS):
            # What fails now is tried again; whoever took over has another file.
            with suppress(OSError):
                self._write(replace(self._holding, heartbeat=self._holding.heartbeat + 1))

    def _write(self, holding: Holding) -> None:
        """Change the file where it is; closing it makes other hosts see that, without fsync."""
        self._holding = holding
        with self._path.open("r+b", buffering=0) as file:
            if os.pread(file.fileno(), SIZE, 0).startswith(self._mark):
                os.pwrite(file.fileno(), holding.content(), 0)


class LeaseWatch:
    """An observer's view of other leases, by its own clock."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[str, float]] = {}

    def look(self, folder: Path) -> tuple[str, str]:
        """Look at a run's lock and lease.

        Returns:
            Who holds the run, empty if nobody does; and, if a lease of another host was seen
            unchanged for its whole length, what `claim` needs to take it over.
        """
        now = time.monotonic()
        is_locked = lock_state(folder / LOCK)
        found, seen = look(folder)
        if found is None or found.released:
            self._seen.pop(folder, None)
            return ("another process" if is_locked else "", "")
        if is_locked:
            return found.holder, ""
        if is_locked is False and found.boot_id == this_boot_id():
            return "", ""
        before, since = self._seen.get(folder, ("", 0.0))
        if seen != before:
            self._seen[folder] = seen, time.monotonic()
        elif now - since > max(lease_seconds(), found.seconds):
            return "", seen
        return found.holder, ""


def lock_state(lock: Path) -> bool | None:
    """Return whether a lock file is held, `None` without locks."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        return None if error.errno in NO_LOCKS else False
    return False


def claim(folder: Path, *, locked: bool, expired: str = "") -> Lease:
    """Take a run's next term, if released or its holder dead.

    The holder is dead if this process has locked out all others of the same system, or if its
    lease, of another host, is the one that a `LeaseWatch` has seen expire.
    """
    seconds = lease_seconds()
    found, seen = look(folder)
    if found is not None and not found.released:
        is_dead = locked and found.boot_id == this_boot_id()
        if not is_dead and seen != expired:
            raise BusyError(
                f"{folder}: {found.holder} is working on this run; if it died, `pernn resume` "
                f"takes the run over after {max(seconds, found.seconds):g} s"
            )
    term = 1 if found is None else found.term + 1
    holding = Holding(
        term, secrets.token_hex(8), socket.gethostname(), os.getpid(), this_boot_id(), seconds
    )
    if not _create(folder, holding) or max(_terms(folder)) != term:
        raise BusyError(f"{folder}: another process has just taken this run")
    for old in sorted(_terms(folder) - {term}):
        (folder / PATTERN.format(old)).unlink(missing_ok=True)
    return Lease(folder, holding)


def lease_seconds() -> float:
    """Return the length of a lease, by default 60 s."""
    word = os.environ.get(VARIABLE, str(SECONDS))
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ConfigError(
            f"{VARIABLE} must be a number of seconds from {SHORTEST_SECONDS} to a day, got {word!r}"
        )
    return seconds


@cache
def this_boot_id() -> str:
    """Return the running system's boot id, or the host's name."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname()


def look(folder: Path) -> tuple[Holding | None, str]:
    """Read the newest term, with an unknown holder if unreadable.

    Beside it is a name of what was seen, another one after every beat.
    """
    for _ in range(NUM_READ_TRIES):
        term = max(_terms(folder), default=None)
        if term is None:
            return None, ""
        path = folder / PATTERN.format(term)
        with storing(path), suppress(FileNotFoundError):
            content = path.read_bytes()
            seen = f"{term}-{hashlib.sha256(content).hexdigest()}"
            with suppress(ValidationError):
                if (holding := _HOLDING.validate_json(content)).term == term:
                    return holding, seen
            return Holding(term), seen
        # A newer one has just replaced it.
    raise CorruptError(f"{path}: cannot be read: delete it if nobody works on this run")


def _terms(folder: Path) -> set[int]:
    """List the terms whose files are there."""
    with storing(folder):
        found = [NAME.fullmatch(path.name) for path in folder.glob("lease-*.json")]
    return {int(one[1]) for one in found if one}


def _create(folder: Path, holding: Holding) -> bool:
    """Make a term's file, whole and only if there is none; also atomic on network file systems."""
    path = folder / PATTERN.format(holding.term)
    draft = folder / f".{path.name}.{holding.owner}.partial"
    with storing(path):
        try:
            draft.write_bytes(holding.content())
            try:
                os.link(draft, path)
            except FileExistsError:
                # The answer of a server may have got lost on the way.
                return draft.stat().st_nlink == 2
            except FileNotFoundError:
                # Swept up by who is taking the run at this moment.
                return False
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                with suppress(FileExistsError), path.open("xb") as file:
                    file.write(holding.content())
                    return True
                return False
            return True
        finally:
            draft.unlink(missing_ok=True)
