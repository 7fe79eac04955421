"""The next trial: finished and held ones are passed over without waiting, dead workers counted."""

import time

from pernn.lab.runners import Limits
from pernn.lab.runners.schedule import MAX_DEATHS, Schedule, drive, make_request, run_request
from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory, lease, read_status
from runners.test_runners import SPEC, SPECS, Ear
from store.test_lease import OtherHost, silence

STAGED = SPEC.override({"analysis": {}})


def make(specs, root, **limits):
    ear = Ear()
    return Schedule(specs, root, Limits(**limits), ear), ear


def run_here(spec, root, on_event, should_continue):
    request = make_request(spec, root, device="cpu", threads=1, expired={})
    return run_request(request, on_event, should_continue)


def start(schedule):
    trial = schedule.next()
    return None if trial is None else trial[0]


class Here:
    """Runs two trials in turn per look, and can let the first ones' machines burn."""

    def __init__(self, schedule, deaths=0):
        self.schedule, self.deaths, self.stopped = schedule, deaths, False

    def has_room(self):
        return len(self.schedule.running) < 2

    def start(self, spec, expired):
        assert set(expired) >= {spec.fingerprint()}

    def look(self):
        for run, spec in list(self.schedule.running.items()):
            if self.deaths:
                self.deaths -= 1
                self.schedule.fail(run, "by fire")
                continue
            root, on_event = self.schedule.root, self.schedule.on_event
            self.schedule.end(run_here(spec, root, on_event, lambda: not self.stopped))

    def stop(self):
        self.stopped = True


def test_what_is_finished_or_held_elsewhere_is_passed_over(tmp_path):
    execute(SPEC, tmp_path, device="cpu")
    schedule, ear = make([SPEC, SPECS[1]], tmp_path)
    assert start(schedule) == SPECS[1]
    assert [(event.run, event.state, event.elsewhere) for event in ear] == [
        (SPEC.fingerprint(), "finished", True)
    ]
    schedule, _ = make([STAGED, SPECS[1]], tmp_path)
    with RunDirectory(tmp_path, SPEC.fingerprint()).locked():
        assert start(schedule) == SPECS[1]


def test_a_held_trial_is_passed_over_at_once_and_looked_at_again(tmp_path, monkeypatch):
    monkeypatch.setattr("pernn.lab.runners.schedule.LOOK_AGAIN_SECONDS", 0.1)
    schedule, ear = make([SPEC, SPECS[1]], tmp_path)
    with RunDirectory(tmp_path, SPEC.fingerprint()).locked():
        assert start(schedule) == SPECS[1]
        assert start(schedule) is None
        time.sleep(0.1)
        assert start(schedule) is None
    # It was told once, with who holds it.
    (event,) = ear
    assert (event.run, event.elsewhere, event.is_end) == (SPEC.fingerprint(), True, False)
    assert "process" in event.message
    time.sleep(0.1)
    assert start(schedule) == SPEC


def test_another_hosts_lease_costs_no_waiting_and_is_followed_after_its_length(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(lease.VARIABLE, "2")
    monkeypatch.setattr("pernn.lab.runners.schedule.LOOK_AGAIN_SECONDS", 0.1)
    schedule, _ = make([SPEC], tmp_path)
    monkeypatch.setattr("store.test_lease.RUN", SPEC.fingerprint())
    with OtherHost(RunDirectory(tmp_path, SPEC.fingerprint()), monkeypatch) as other:
        begun = time.monotonic()
        for _ in range(8):
            # It beats: however long it is looked at, it is held.
            assert schedule.next() is None
            time.sleep(0.1)
        silence(other)
        since = time.monotonic()
        while (trial := schedule.next()) is None:
            assert time.monotonic() - begun < 240
            time.sleep(0.05)
        assert time.monotonic() - since > 1
        spec, expired = trial
        # The lease that was seen to expire is taken over without another wait.
        begun = time.monotonic()
        with RunDirectory(tmp_path, spec.fingerprint()).locked(expired=expired[spec.fingerprint()]):
            assert time.monotonic() - begun < 2


def test_a_lease_that_was_not_seen_to_expire_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("store.test_lease.RUN", SPEC.fingerprint())
    with OtherHost(RunDirectory(tmp_path, SPEC.fingerprint()), monkeypatch):
        begun = time.monotonic()
        end = run_here(SPEC, tmp_path, Ear(), lambda: True)
    assert (end.state, end.elsewhere) == ("running", True)
    # A lease beats every ten seconds: nobody waited for it.
    assert time.monotonic() - begun < 5


def test_what_was_stopped_unasked_is_started_again_and_deaths_are_counted(tmp_path):
    schedule, ear = make([SPEC], tmp_path)
    drive(Here(schedule, deaths=MAX_DEATHS), schedule)
    run = SPEC.fingerprint()
    message = f"its worker died {MAX_DEATHS} times, last by fire"
    assert [(event.run, event.state, event.message) for event in ear] == [(run, "failed", message)]
    status = read_status(tmp_path, run)
    assert (status.state, status.reason) == ("failed", message)
    # The next driver takes it up again.
    schedule, ear = make([SPEC], tmp_path)
    drive(Here(schedule, deaths=MAX_DEATHS - 1), schedule)
    assert ear.ends() == {run: "finished"}
    schedule, ear = make([SPEC], tmp_path / "other")
    engine = Here(schedule)
    engine.stopped = True
    assert start(schedule) == SPEC
    engine.look()
    assert not ear.ends()
    engine.stopped = False
    drive(engine, schedule)
    assert ear.ends() == {SPEC.fingerprint(): "finished"}


def test_a_limit_of_trials_leaves_no_room_for_more(tmp_path):
    schedule, ear = make(SPECS, tmp_path, trials=3)
    drive(Here(schedule), schedule)
    assert list(ear.ends().values()) == ["finished"] * 3
    assert schedule.limits.reason == "--max-trials 3 reached"
