"""A tiny run that is killed, or told of an error, at every call that it makes of the file system.

Each victim is forked from a server that has imported torch. Whatever happened to it, the next one
must go on and end with the files of the undisturbed run: no other bits, no checkpoint more or less.
"""

import errno
import io
import multiprocessing
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pernn.errors import PernnError
from pernn.lab.runs import RunSpec, execute
from pernn.lab.store import LeaseWatch
from pernn.lab.store.lease import VARIABLE

from .commands import Counts, require
from .trials import PATIENCE, contents, make_trials, move_to_another_host, run_of

CALLS = ("open", "write", "pwrite", "ftruncate", "fsync", "mkdir", "link", "rename", "replace",
         "unlink", "rmdir")  # fmt: skip
WRITES = ("write", "pwrite")
GROWING = (*WRITES, "mkdir", "link", "create")
"""Calls that a full disk refuses."""
HARMS = ("kill before", "kill after", "EIO", "ENOSPC", "half")
STOPS = ("stop before", "stop after")
LEASE_SECONDS = 0.4
PAUSES = (0, 1, 2, 4)
"""Updates that the next holder has done when the stopped one goes on; all if 0."""
DELETED = 0.3
"""Share of stopped holders whose directory is deleted before the next one begins."""
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
REFUSED = 4
TINY = {
    **dict.fromkeys(("core.hidden_size", "encoding.size", "embedding_size"), 8),
    **dict.fromkeys(("task.vocab_size", "task.length", "training.batch_size"), 4),
    "task.num_held_out": 16,
    "training.evaluation_interval": 3,
}


class Meddler:
    """Counts the calls that concern a folder, and does harm at one of them, counted from 1.

    Other places and other threads are left alone. Of `HARMS`, `EIO` lets the call fail once,
    `ENOSPC` it and all later ones that need space, `half` writes half.
    """

    def __init__(self, folder: Path, at: int = 0, harm: str = "") -> None:
        self.made: list[str] = []
        self._folder, self._at, self._harm = str(folder), at, harm
        self._thread = threading.get_ident()

    def install(self) -> None:
        """Take the place of the functions, for as long as this process lives."""
        for name in CALLS:
            setattr(os, name, self._around(name, getattr(os, name)))
        io.open = self._around("open", io.open)

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        what, _, when = self._harm.partition(" ")

        def meddled(*words: Any, **more: Any) -> Any:
            if threading.get_ident() != self._thread or not self._concerns(words[0], more):
                return call(*words, **more)
            self.made.append("create" if name == "open" and _creates(words, more) else name)
            number, kind = len(self.made), self.made[-1]
            if what == "ENOSPC" and 0 < self._at <= number and kind in GROWING:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(words[0]))
            if number != self._at:
                return call(*words, **more)
            if what == "EIO":
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(words[0]))
            if when == "before":
                os.kill(os.getpid(), SIGNALS[what])
            if what == "half":
                words = (words[0], words[1][: len(words[1]) // 2], *words[2:])
            try:
                return call(*words, **more)
            finally:
                if when == "after":
                    os.kill(os.getpid(), SIGNALS[what])

        return meddled

    def _concerns(self, place: Any, more: dict[str, Any]) -> bool:
        descriptor = place if isinstance(place, int) else more.get("dir_fd")
        path = Path() if isinstance(place, int) else Path(os.fsdecode(place))
        try:
            if descriptor is not None:
                path = Path(f"/proc/self/fd/{descriptor}").readlink() / path
        except OSError:
            return False
        return path.is_relative_to(self._folder)


def _creates(words: Sequence[Any], more: dict[str, Any]) -> bool:
    how = words[1] if len(words) > 1 else more.get("mode", "r")
    return bool(how & os.O_CREAT) if isinstance(how, int) else not how.startswith("r")


def victim(spec: RunSpec, root: Path, log: Path | None, at: int = 0, harm: str = "") -> None:
    """Carry out a run under harm; an error that is not ours leaves a traceback and status 1."""
    meddler = Meddler(root, at, harm)
    if harm in STOPS:
        os.environ[VARIABLE] = str(LEASE_SECONDS)
        move_to_another_host()
    meddler.install()
    try:
        execute(spec, root, device="cpu", on_warning=lambda said: None)
    except PernnError as error:
        require(harm in ("EIO", "ENOSPC", "half", *STOPS), f"{harm}, and then {error}")
        sys.exit(REFUSED)
    if log is not None:
        log.write_text("\n".join(meddler.made))


def follow(spec: RunSpec, root: Path, pause: int) -> None:
    """Take a run over when its lease has expired; stop this process after some updates, if any."""
    os.environ[VARIABLE] = str(LEASE_SECONDS)
    watch, run, updates = LeaseWatch(), run_of(root, spec), []
    while (seen := watch.look(run.path))[0]:
        time.sleep(LEASE_SECONDS / 20)

    def count(update: int) -> bool:
        updates.append(update)
        if len(updates) == pause:
            os.kill(os.getpid(), signal.SIGSTOP)
        return True

    taken = {run.fingerprint: seen[1]} if seen[1] else {}
    execute(spec, root, device="cpu", on_update=count, on_warning=lambda said: None, expired=taken)


def start(task: Callable[..., None], *words: object) -> BaseProcess:
    """Start a function in a process of its own that has imported torch."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pernn.lab.runs.execution", "torch.optim"])
    process = context.Process(target=task, args=words)
    process.start()
    return process


def await_end(process: BaseProcess, what: object) -> int:
    """Return a process's exit status."""
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        raise AssertionError(f"{what}: hangs")
    return process.exitcode


def await_stop(process: BaseProcess) -> None:
    """Wait until a process is stopped, or at its end."""
    stat = Path(f"/proc/{process.pid}/stat")
    deadline = time.monotonic() + PATIENCE
    while process.is_alive() and time.monotonic() < deadline:
        with suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[0] == "T":
                return
        time.sleep(0.005)


def run_counted(directory: Path) -> tuple[RunSpec, dict[str, bytes], list[str]]:
    """Carry the tiny run out in peace; return it with its files and the calls that it made."""
    spec = make_trials(1, 6)[0].override(TINY)
    root, log = directory / "undisturbed", directory / "calls"
    status = await_end(start(victim, spec, root, log), "undisturbed")
    require(status == 0, "undisturbed, and yet it failed")
    return spec, contents(run_of(root, spec).path), log.read_text().split("\n")


def require_files(folder: Path, expected: dict[str, bytes], what: str) -> None:
    """Hold a run to the files of the undisturbed one."""
    found = contents(folder)
    differ = sorted(n for n in {*found, *expected} if found.get(n) != expected.get(n))
    require(not differ, f"{what}: other files: {differ}")


def every_call(directory: Path, *, most: int | None = None) -> Counts:
    """Do every harm at every call of a tiny run, then resume; `most` takes a sample."""
    spec, expected, made = run_counted(directory)
    root = directory / "harmed"
    needs = {"ENOSPC": GROWING, "half": WRITES}
    every = product(enumerate(made, start=1), HARMS)
    cases = [(number, harm) for (number, name), harm in every if name in needs.get(harm, made)]
    chosen = cases if most is None else random.Random(13).sample(cases, most)
    count: Counter[str] = Counter()
    for number, harm in chosen:
        what = f"{harm}, call {number} ({made[number - 1]})"
        shutil.rmtree(root, ignore_errors=True)
        status = await_end(start(victim, spec, root, None, number, harm), what)
        ends = (-signal.SIGKILL,) if harm.startswith("kill") else (0, REFUSED)
        require(status in ends, f"{what}: status {status}")
        require(await_end(start(victim, spec, root, None), what) == 0, f"{what}: not resumed")
        require_files(run_of(root, spec).path, expected, what)
        count[f"{harm}, {'survived' if status == 0 else 'resumed'}"] += 1
    return {"num_calls": len(made), "num_cases": len(chosen), **count}


def stopped_at_every_call(directory: Path, *, most: int | None = None) -> Counts:
    """Stop a holder on another host at every call beyond its lease; `most` takes a sample.

    Another process takes the run over, or begins it anew where its directory was deleted, as
    advised for damage; the first one goes on while that is under way or done.
    """
    spec, expected, made = run_counted(directory)
    root = directory / "stopped"
    cases = [*product(range(1, len(made) + 1), STOPS)]
    chance = random.Random(17)
    chosen = cases if most is None else chance.sample(cases, most)
    count: Counter[str] = Counter()
    for number, harm in chosen:
        pause, is_deleted = chance.choice(PAUSES), chance.random() < DELETED
        what = f"{harm}, call {number} ({made[number - 1]}), the next {pause or 'all'} updates"
        shutil.rmtree(root, ignore_errors=True)
        first = start(victim, spec, root, None, number, harm)
        await_stop(first)
        if is_deleted:
            what += ", its directory deleted"
            shutil.rmtree(run_of(root, spec).path, ignore_errors=True)
        second = start(follow, spec, root, pause)
        await_stop(second)
        status = None
        if first.is_alive():
            os.kill(first.pid, signal.SIGCONT)
            status = await_end(first, what)
            require(status in (0, REFUSED), f"{what}: status {status}")
        if second.is_alive():
            os.kill(second.pid, signal.SIGCONT)
        ended = await_end(second, what)
        require(ended == 0, f"{what}: the next one ended with {ended}")
        require_files(run_of(root, spec).path, expected, what)
        count["left" if status == REFUSED else "found it done"] += 1
        count["deleted"] += is_deleted
    return {"num_calls": len(made), "num_cases": len(chosen), **count}
