"""Local sweeps under fire: killed, doubled, stopped, with clocks and hosts that disagree."""

import json
import os
import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path

from .commands import Counts
from .trials import (
    Driver,
    all_done,
    compare,
    contents,
    make_trials,
    newest,
    run_of,
    send,
    wait_until,
)

LEASE = "PERNN_LEASE_SECONDS"

LATE_CLOCK = """
import datetime
import time

SHIFT = {seconds}
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + SHIFT
time.time_ns = lambda: nanoseconds() + SHIFT * 10**9


class datetime_(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=SHIFT)


datetime.datetime = datetime_
"""
"""Read by Python when it starts: shifts the clock of the day for a process and its children."""


def random_kills(
    directory: Path,
    *,
    num_trials: int = 40,
    num_kills: int = 200,
    num_updates: int = 200,
    kill_seconds: float = 1800.0,
) -> Counts:
    """Kill workers, the driver or all at random moments while a sweep runs.

    Half of the kills wait for a new checkpoint, so that they are spread over the whole sweep; the
    others come at any time, also while a worker begins. After `kill_seconds` the rest is done in
    peace: how many kills there were is counted.
    """
    specs = make_trials(num_trials, num_updates)
    root, chance = directory / "killed", random.Random(11)
    kills = {"worker": 0, "driver": 0, "both": 0}
    begun = time.monotonic()

    def progress() -> list[int]:
        return [newest(root, spec) for spec in specs]

    with ExitStack() as stack:
        driver = stack.enter_context(Driver(root, specs, 2))
        while sum(kills.values()) < num_kills and not all_done(root, specs):
            if time.monotonic() - begun > kill_seconds:
                break
            if chance.random() < 0.5:
                before = progress()
                wait_until(lambda: not driver.alive or before != progress())  # noqa: B023
                time.sleep(0.1 * chance.random())
            else:
                time.sleep(1.5 * chance.random())
            (kind,) = chance.choices(list(kills), [5, 3, 2])
            workers = driver.workers()
            victims = [chance.choice(workers)] if kind == "worker" and workers else []
            victims += [driver.process.pid] if kind != "worker" and driver.alive else []
            victims += workers if kind == "both" else []
            hit = [send(victim, signal.SIGKILL) for victim in victims]
            kills[kind] += bool(hit) and all(hit)
            if (victims and kind != "worker") or not driver.alive:
                driver.process.wait()
                driver = stack.enter_context(Driver(root, specs, 2))
        driver.process.wait()
        while not all_done(root, specs):
            # A trial whose workers died too often is given up by a driver, not by the next one.
            stack.enter_context(Driver(root, specs, 2)).process.wait()
    counts: Counts = {"trials": num_trials, "kills": sum(kills.values())}
    counts |= {f"kills of {kind}": count for kind, count in kills.items()}
    return {**counts, "seconds": round(time.monotonic() - begun), **compare(root, specs)}


def two_drivers(
    directory: Path, *, num_trials: int = 12, num_updates: int = 60, seconds_off: int = 3600
) -> Counts:
    """Have two drivers work on one directory at once, the second one's clock wrong.

    Its own and its workers' clock of the day is shifted inside Python; file times are the system's.
    """
    specs = make_trials(num_trials, num_updates)
    root = directory / "shared"
    code = directory / "late"
    code.mkdir()
    (code / "sitecustomize.py").write_text(LATE_CLOCK.format(seconds=seconds_off))
    folders = [str(code), *filter(None, [os.environ.get("PYTHONPATH")])]
    late = {"PYTHONPATH": os.pathsep.join(folders)}
    with Driver(root, specs, 1) as first, Driver(root, specs, 1, **late) as second:
        first.finish()
        second.finish()
    finished = []
    for driver in (first, second):
        events = map(json.loads, driver.said.read_text().splitlines())
        finished.append(sum(e["state"] == "finished" and not e["elsewhere"] for e in events))
    begun, off = 0, 0
    for spec in specs:
        journal = run_of(root, spec).read_journal()
        begun += sum(line["event"] in ("started", "resumed") for line in journal)
        of_day = (run_of(root, spec).path / "result.json").stat().st_mtime
        hour = time.strftime("%Y-%m-%dT%H", time.gmtime(of_day + seconds_off))
        off += journal[-1]["time"].startswith(hour)
    assert begun == sum(finished) == num_trials, (begun, finished)
    counts = {"trials": num_trials, "by the first": finished[0], "by the late one": finished[1]}
    return {**counts, "times off": off} | compare(root, specs)


def stopped_workers(
    directory: Path, *, num_stops: int = 4, num_updates: int = 200, lease: float = 2.0
) -> Counts:
    """Stop a worker beyond its lease, then have it go on, a trial each time.

    By turns its driver dies, so that another driver waits for the worker, which is stopped while it
    holds the run, and lives, which replaces the worker.
    """
    specs = make_trials(num_stops, num_updates)
    root, replaced, waited = directory / "stopped", 0, 0
    short = {LEASE: str(lease)}
    for number, spec in enumerate(specs):
        with ExitStack() as stack:
            driver = stack.enter_context(Driver(root, [spec], 1, **short))
            wait_until(lambda: newest(root, spec) > 0)  # noqa: B023 called at once
            (worker,) = driver.workers()
            stack.callback(send, worker, signal.SIGKILL)
            send(worker, signal.SIGSTOP)
            if number % 2 == 0:
                driver.process.kill()
                driver.process.wait()
                driver = stack.enter_context(Driver(root, [spec], 1, **short))
                wait_until(lambda: '"elsewhere": true' in driver.said.read_text())  # noqa: B023
                time.sleep(1.5 * lease)
                assert not all_done(root, [spec])
                send(worker, signal.SIGCONT)
                waited += 1
            else:
                wait_until(lambda: worker not in driver.workers())  # noqa: B023
                replaced += 1
            driver.finish()
    counts = {"stops": num_stops, "workers replaced": replaced, "holders waited for": waited}
    return counts | compare(root, specs)


def stopped_host(
    directory: Path, *, num_stops: int = 4, num_updates: int = 300, lease: float = 2.0
) -> Counts:
    """Stop a holder on another host beyond its lease, then have it go on, a trial each time.

    The other host is a process with another boot id whose locks nobody here sees. By turns it goes
    on while the trial is being taken further, and when it is done. It must notice, and leave.
    """
    specs = make_trials(num_stops, num_updates)
    root, noticed = directory / "hosts", 0
    short = {LEASE: str(lease)}
    for number, spec in enumerate(specs):
        with ExitStack() as stack:
            holder = stack.enter_context(Driver(root, [spec], 0, **short))
            wait_until(lambda: newest(root, spec) > 0)  # noqa: B023 called at once
            send(holder.process.pid, signal.SIGSTOP)
            stopped_at = newest(root, spec)
            driver = stack.enter_context(Driver(root, [spec], 1, **short))
            wait_until(lambda: newest(root, spec) > stopped_at)  # noqa: B023
            if number % 2:
                driver.finish()
                before = contents(run_of(root, spec).path)
            send(holder.process.pid, signal.SIGCONT)
            holder.finish()
            driver.finish()
            if number % 2:
                assert contents(run_of(root, spec).path) == before
            noticed += "lost the lease to process" in holder.said.read_text()
    assert noticed == num_stops, noticed
    counts = {"stops": num_stops, "losses noticed": noticed}
    return counts | compare(root, specs)
