"""Leases: the dead are followed at once on one host, after silence on another; zombies notice."""

import json
import os
import shutil
import time
from contextlib import ExitStack, suppress

import pytest

from pernn.errors import BusyError, ConfigError, CorruptError
from pernn.lab.config import checksum
from pernn.lab.store import Checkpoint, LeaseWatch, RunDirectory, lease, read_status

SPEC = {"seed": 1}
RUN = checksum(SPEC)[:16]
SECONDS = 0.6


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv(lease.VARIABLE, str(SECONDS))
    return RunDirectory(tmp_path, RUN)


class OtherHost:
    """This process as if on a host whose locks nobody here sees."""

    def __init__(self, run, monkeypatch, boot_id="another kernel"):
        self.run, self.patch = RunDirectory(run.path.parents[1], RUN), monkeypatch
        self.boot_id = boot_id

    def __enter__(self):
        with self.patch.context() as patch:
            patch.setattr(lease, "this_boot_id", lambda: self.boot_id)
            patch.setattr("pernn.lab.store.run_directory.fcntl.flock", lambda *_: None)
            self.lock = self.run.locked()
            self.lock.__enter__()
        return self.run

    def __exit__(self, *error):
        self.lock.__exit__(None, None, None)


def silence(run):
    """Have a holder say nothing any more, as if it were stopped."""
    run._lease._leaving.set()
    run._lease._beating.join()


def watched(run):
    """Watch a silent holder until its lease has expired; return the lease's name."""
    watch, expired = LeaseWatch(), ""
    while not expired:
        holder, expired = watch.look(run.path)
        assert bool(holder) != bool(expired)
        time.sleep(SECONDS / 20)
    return expired


def test_terms_rise_and_a_dead_holder_of_this_host_is_followed_at_once(run):
    for term in (1, 2, 3):
        with run.locked():
            assert lease.look(run.path)[0].term == term
            assert not lease.look(run.path)[0].released
        assert lease.look(run.path)[0].released
    assert [path.name for path in run.path.glob("lease-*")] == ["lease-000003.json"]
    dead = lease.Holding(4, boot_id=lease.this_boot_id(), seconds=1000.0)
    (run.path / "lease-000004.json").write_bytes(dead.content())
    begun = time.monotonic()
    with run.locked():
        assert lease.look(run.path)[0].term == 5
    assert time.monotonic() - begun < SECONDS


def test_a_holder_on_another_host_is_seen_by_its_beat_and_missed_after_ten_minutes(
    run, monkeypatch, tmp_path
):
    with OtherHost(run, monkeypatch) as other:
        other.write_spec(SPEC)
        status = read_status(tmp_path, RUN)
        assert (status.state, status.reason.startswith("held by process")) == ("running", True)
        begun = time.monotonic()
        with pytest.raises(BusyError, match="is working on this run"), run.locked():
            pass
        assert time.monotonic() - begun < SECONDS
        silence(other)
        assert read_status(tmp_path, RUN).state == "running"
        (path,) = run.path.glob("lease-*.json")
        os.utime(path, (0, time.time() - 601))
        status = read_status(tmp_path, RUN)
        assert (status.state, status.reason.startswith("no sign of process")) == ("stopped", True)
    assert read_status(tmp_path, RUN).state == "stopped"


def test_a_silent_holder_on_another_host_is_followed_after_its_lease(run, monkeypatch):
    with OtherHost(run, monkeypatch) as other:
        other.append_metrics({"update": 1})
        silence(other)
        begun = time.monotonic()
        with run.locked(watched(run)):
            assert time.monotonic() - begun >= SECONDS
            changes_nothing(other, run)


def test_two_writers_of_the_same_lines_converge(run, tmp_path):
    alone = RunDirectory(tmp_path / "alone", RUN)
    alone.path.mkdir(parents=True)
    for line in LINES:
        alone.append_metrics(line)
    run.path.mkdir(parents=True)
    late = RunDirectory(tmp_path, RUN)
    for line in LINES[:5]:
        late.append_metrics(line)
    seen = run.path.joinpath("metrics.jsonl").read_text().splitlines(keepends=True)[:2]
    run.restore_metrics({"metrics": "".join(seen)})
    # The late one is a few lines ahead: its next one would leave a hole.
    with pytest.raises(CorruptError, match="run the same command again"):
        late.append_metrics(LINES[5])
    with pytest.raises(CorruptError, match="run the same command again"):
        late.metrics_so_far()
    late.restore_metrics({"metrics": "".join(seen)})
    for line in LINES[2:]:
        late.append_metrics(line)
    for line in LINES[2:]:
        run.append_metrics(line)
    late.append_metrics({"update": 9})
    with pytest.raises(CorruptError, match="changed while"):
        run.append_metrics({"update": 10})
    late.restore_metrics(alone.metrics_so_far())
    written = (run.path / "metrics.jsonl").read_bytes()
    assert written == (alone.path / "metrics.jsonl").read_bytes()


LINES = [{"update": update, "loss": 1 / update} for update in range(1, 9)]
WRITES = {
    "append": lambda run: run.append_metrics(LINES[4]),
    "go back": lambda run: run.restore_metrics({}),
    "keep": lambda run: run.checkpoints.save(Checkpoint(4, {}, run.metrics_so_far())),
    "note": lambda run: run.note("stopped"),
    "environment": lambda run: run.write_environment({"threads": 2}),
    "result": lambda run: run.write_result({"fingerprint": RUN, "metrics": {"loss": 2.0}}),
}


def files(run):
    """Return what is there; of the journal, in which a line more does no harm, the beginning."""
    found = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    journal = run.path / "journal.jsonl"
    return {**found, journal: found[journal].partition(b'"event": "started"')[0]}


def changes_nothing(loser, run):
    """Have who lost a run try all that it could write, to the very release of its lease."""
    silence(run)  # its own beat is a change, too
    run.note("started")
    before = files(run)
    for write in (*WRITES.values(), lambda run: run.checkpoints.prune(None)):
        with pytest.raises(BusyError, match="lost the lease to process"):
            write(loser)
    loser._lease.release()
    assert files(run) == before


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("deleted", [False, True], ids=["expired", "deleted"])
def test_who_is_stopped_after_any_look_changes_nothing_of_the_next_holders(
    run, monkeypatch, write, number, deleted
):
    with OtherHost(run, monkeypatch) as other, ExitStack() as stack:
        other.write_spec(SPEC)
        for line in LINES[:4]:
            other.append_metrics(line)
        state = {"metrics": "".join(json.dumps(line) + "\n" for line in LINES[:2])}
        look, looks, found = other._lease.check, [], []

        def take_over():
            look()
            looks.append(1)
            if len(looks) != number:
                return
            silence(other)
            if deleted:
                shutil.rmtree(run.path)
            expired = "" if deleted else watched(run)
            stack.enter_context(run.locked(expired))
            silence(run)  # its own beat is a change, too
            run.write_spec(SPEC)
            run.write_environment({"threads": 1})
            run.restore_metrics(state)
            run.note("started")
            found.append(files(run))

        other._lease.check = take_over
        # Either it notices, or what it writes comes into a file that is gone.
        with suppress(BusyError):
            WRITES[write](other)
        assert found == [files(run)]
        other._lease.release()
        assert found == [files(run)]
        for line in LINES[2:]:
            run.append_metrics(line)
        assert run.read_metrics() == LINES
        with pytest.raises(BusyError, match="lost the lease to process"):
            other.note("stopped")


@pytest.mark.parametrize("deleted", [False, True], ids=["alive", "deleted"])
def test_hosts_of_one_snapshot_share_a_boot_id_and_no_owner(run, monkeypatch, deleted):
    # Where no lock reaches, the second takes the run of the first, which lives, at once.
    with OtherHost(run, monkeypatch, lease.this_boot_id()) as other:
        other.write_spec(SPEC)
        for line in LINES[:4]:
            other.append_metrics(line)
        if deleted:
            shutil.rmtree(run.path)
        with run.locked():
            run.write_spec(SPEC)
            changes_nothing(other, run)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"term": 7}', '{"term": 1, "seconds": NaN}', '{"term": 1, "host": "\\u001b"}',
     '{"term": 1, "seconds": 1e300}', '{"term": 1, "released": 1}', "[" * 100_000],
)  # fmt: skip
def test_whatever_stands_in_a_lease_it_is_watched_and_then_followed(run, content):
    run.path.mkdir(parents=True)
    (run.path / "lease-000001.json").write_text(content)
    found, _ = lease.look(run.path)
    assert (found.term, found.released, found.boot_id) == (1, False, "")
    with run.locked(watched(run)):
        assert lease.look(run.path)[0].term == 2


def test_a_lease_that_nobody_saw_expire_is_not_taken_over(run, monkeypatch):
    with OtherHost(run, monkeypatch) as other:
        _, before = lease.look(run.path)
        other._lease._leaving.wait(SECONDS / 2)
        silence(other)
        for expired in ("", before):
            with pytest.raises(BusyError, match=r"takes the run over after 0\.6 s"):
                run.locked(expired).__enter__()


@pytest.mark.parametrize("word", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_the_length_of_a_lease_is_checked(run, monkeypatch, word):
    monkeypatch.setenv(lease.VARIABLE, word)
    with pytest.raises(ConfigError, match=lease.VARIABLE), run.locked():
        pass


def test_without_links_a_term_is_still_claimed_once(run, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pernn.lab.store.lease.os.link", refuse)
    with run.locked():
        assert json.loads((run.path / "lease-000001.json").read_bytes())["term"] == 1
        holding = lease.Holding(1)
        assert not lease._create(run.path, holding)
    assert not list(run.path.glob(".*"))


def test_a_checkpoint_that_kept_a_damaged_log_is_set_aside(run):
    run.path.mkdir(parents=True)
    run.checkpoints.save(Checkpoint(1, {}, {"metrics": '{"update": 1}\n'}))
    run.checkpoints.save(Checkpoint(2, {}, {"metrics": "\0" * 20 + '{"update": 2}\n'}))
    found, complaints = run.checkpoints.load_latest()
    assert found.update == 1
    assert len(complaints) == 1
    assert "state.json, line 1: expected value" in complaints[0]
    assert (run.checkpoints.path / "damaged-update-000000002").is_dir()
