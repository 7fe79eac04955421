"""Packs of runs: the files that each run has alone, whatever was stopped in between."""

from pathlib import Path

import pytest
import torch
from scenarios.trials import contents, folder_of

from pernn.errors import BusyError, ConfigError, TrialError
from pernn.runs import RunSpec, execute, execute_pack, packing
from pernn.store import RunDirectory
from training.test_loop import SPEC

SPECS = [
    SPEC.override({"seed": seed, "core.hidden_size": 16, "embedding_size": 16})
    for seed in (1, 2, 3)
]


@pytest.fixture(autouse=True)
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LEAST_GAIN", 0.0)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("alone")
    for spec in SPECS:
        execute(spec, root, device="cpu")
    return root


def same(root: Path, alone: Path) -> bool:
    return all(contents(folder_of(root, s)) == contents(folder_of(alone, s)) for s in SPECS)


def test_a_pack_leaves_the_files_that_its_members_leave_alone(tmp_path: Path, alone: Path) -> None:
    heard: list[tuple[str, int]] = []

    def listener(run: str, update: int) -> bool:
        heard.append((run, update))
        return True

    ends = execute_pack(SPECS, tmp_path, device="cpu", listener=listener)
    assert [end.status for end in ends] == ["finished"] * 3
    assert same(tmp_path, alone)
    # Side by side: every run is told of an update before any is told of the next.
    assert [update for _, update in heard] == [n for n in range(1, 13) for _ in SPECS]
    again = execute_pack(SPECS, tmp_path, device="cpu")
    assert [end.status for end in again] == ["already done"] * 3


def test_stopped_packs_go_on_in_whatever_company(tmp_path: Path, alone: Path) -> None:
    ends = execute_pack(SPECS, tmp_path, device="cpu", listener=lambda run, update: update < 5)
    assert [end.status for end in ends] == ["stopped"] * 3
    for spec in SPECS:
        assert RunDirectory(tmp_path, spec.fingerprint()).checkpoints.updates() == [4, 5]
    # One of them is further now: the other two go together, it goes alone.
    execute(SPECS[1], tmp_path, device="cpu", listener=lambda update: update < 7)
    ends = execute_pack(SPECS, tmp_path, device="cpu")
    assert [end.status for end in ends] == ["finished"] * 3
    results = [contents(folder_of(root, SPECS[0])) for root in (tmp_path, alone)]
    assert results[0]["result.json"] == results[1]["result.json"]
    assert results[0]["metrics.jsonl"] == results[1]["metrics.jsonl"]


def test_a_member_that_is_busy_or_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = packing.Member.begin

    def spoil(spec: RunSpec, *rest: object) -> packing.Member:
        member = begin(spec, *rest)
        if spec == SPECS[2]:
            with torch.no_grad():
                member.trial.model.readout.bias[0] = torch.inf
        return member

    monkeypatch.setattr(packing.Member, "begin", spoil)
    with RunDirectory(tmp_path, SPECS[0].fingerprint()).locked():
        busy, finished, failed = execute_pack(SPECS, tmp_path, device="cpu")
    assert isinstance(busy, BusyError)
    assert finished.status == "finished"
    assert isinstance(failed, TrialError)
    journal = RunDirectory(tmp_path, SPECS[2].fingerprint()).read_journal()
    assert journal[-1]["event"] == "failed"


def test_what_is_slower_together_goes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LEAST_GAIN", float("inf"))
    heard: list[str] = []

    def listener(run: str, update: int) -> bool:
        heard.append(run)
        return len(heard) < 17

    ends = execute_pack(SPECS, tmp_path, device="cpu", listener=listener)
    assert [end.status for end in ends] == ["finished", "stopped", "stopped"]
    first, second, third = (spec.fingerprint() for spec in SPECS)
    assert heard == [first] * 12 + [second] * 5
    assert RunDirectory(tmp_path, third).checkpoints.updates() == []


def test_a_gain_is_measured_on_copies(tmp_path: Path, alone: Path) -> None:
    measured: list[float] = []
    original = packing.gain

    def gain(*words: object) -> float:
        measured.append(original(*words))
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "gain", gain)
        patch.setattr(packing, "LEAST_GAIN", 1.0)
        execute_pack(SPECS, tmp_path, device="cpu")
    assert len(measured) == 1
    assert 0.05 < measured[0] < 50
    assert same(tmp_path, alone)


def test_only_runs_that_differ_in_their_seed_go_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="differ in their seed only"):
        execute_pack([SPECS[0], SPECS[1].override({"training.batch_size": 9})], tmp_path)
    assert not list(tmp_path.iterdir())
    keys = {spec.pack_key() for spec in SPECS}
    assert len(keys) == 1
    assert None not in keys
    assert SPECS[0].override({"training.batch_size": 9}).pack_key() not in keys
