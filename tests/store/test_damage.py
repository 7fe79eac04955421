"""Damage and hostility file by file: nothing is believed that is not what was written."""

import io
import json
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest

from pernn.errors import CorruptError, StoreError, VersionError
from pernn.lab.config import checksum
from pernn.lab.store import (
    CheckpointFolder,
    RunDirectory,
    Sweep,
    load_sweep,
    parse_json,
    read_status,
    save_sweep,
    sealed,
)
from pernn.lab.store import run_directory as module
from pernn.lab.store.files import iterate_lines, read_whole
from pernn.lab.trials import read_trial

SPEC = {"seed": 1}
RUN = checksum(SPEC)[:16]


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path, RUN)
    with run.locked():
        run.write_spec(SPEC)
        run.write_environment({"threads": 1})
        run.write_result({"fingerprint": RUN, "metrics": {"loss": 0.5}})
    return run


@pytest.fixture
def read_lines(tmp_path):
    def read(content, **how):
        (tmp_path / "log").write_bytes(content)
        return [*iterate_lines(tmp_path / "log", **how)]

    return read


def change(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_a_changed_digit_is_noticed(run, tmp_path):
    for name, before, after, read in (
        ("result.json", "0.5", "0.6", run.read_result),
        ("spec.json", '"seed": 1', '"seed": 2', lambda: run.write_spec(SPEC)),
        ("environment.json", '"threads": 1', '"threads": 2', run.read_environment),
    ):
        change(run.path / name, before, after)
        with pytest.raises(CorruptError, match="changed since"):
            read()
    path = save_sweep(tmp_path, Sweep("a", "b", "demo", {"seed": 1}, [RUN])) / "sweep.json"
    change(path, '"seed": 1', '"seed": 2')
    with pytest.raises(CorruptError, match="changed since"):
        load_sweep(tmp_path, "a")


def test_a_finished_runs_edited_spec_reaches_no_report(run, tmp_path):
    change(run.path / "spec.json", '"seed": 1', '"seed": 2')
    with pytest.raises(CorruptError, match="was changed"):
        read_trial(tmp_path, RUN)
    (run.path / "result.json").unlink()
    # Without a result it gives no record, and is no reason to refuse those of others.
    assert read_trial(tmp_path, RUN) is None


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": 1E+400}',
        b'{"a": 12e0309}',
        b'{"a": 123456789012345678901}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": 01}',
        b'{"a": 1}{"b": 2}',
        b"[1]",
        b"{",
        b"",
    ],
)
def test_only_finite_objects_are_read(read_lines, content):
    with pytest.raises(ValueError, match=r".+") as found:
        parse_json(content)
    with pytest.raises(CorruptError, match=re.escape(f"log, line 2: {found.value}")):
        read_lines(b'{"a": 0.00012345678901234567}\n' + content + b"\n")
    values = sealed({"a": 1e308, "b": [-0.0, 5e-324, None], "c": 0.00012345678901234567})
    for read in (parse_json, lambda line: read_lines(line + b"\n")[0]):
        assert read(json.dumps(values).encode()) == {k: values[k] for k in "abc"}
        assert repr(read(b'{"a": -0.0, "b": 1e99}')) == "{'a': -0.0, 'b': 1e+99}"


@pytest.mark.parametrize("damage", [b"}", b"{", b",", b"\n", b"x", b'"', b"[", b""])
def test_lines_read_at_once_are_those_read_one_by_one(read_lines, damage):
    """Whatever byte of a log is lost or changed, and where it is cut."""
    content = b'{"a": 1, "b": [2.5, null]}\n{"update": 3}\n{"c": {"d": "e"}}\n'
    for place in range(len(content)):
        for changed in (content[:place] + damage + content[place + 1 :], content[:place]):
            expected = []
            for line in io.BytesIO(changed):
                if line.endswith(b"\n"):
                    with suppress(ValueError):
                        expected.append(parse_json(line[:-1]))
            assert read_lines(changed, strict=False) == expected


def test_a_sealed_line_among_others_is_checked_and_older_files_have_no_checksum(read_lines, run):
    content = json.dumps(sealed({"a": 1})).encode()
    lines = [b'{"a": 1}\n', content + b"\n"]
    assert read_lines(b"".join(lines)) == [{"a": 1}, {"a": 1}]
    with pytest.raises(CorruptError, match="line 2: changed since"):
        read_lines(b"".join(lines).replace(b'1, "', b'2, "'))
    path = run.path / "result.json"
    values = json.loads(path.read_text())
    del values["checksum"]
    path.write_text(json.dumps(values))
    assert run.read_result() == values


def test_what_is_nested_without_end_or_too_large_is_damage(run):
    path = run.path / "spec.json"
    for depth in (100, 500, 900, 990, 1000, 5000):
        deep = '{"a":' * depth + "1" + "}" * depth
        path.write_text(f'{{"format": 1, "fingerprint": "{RUN}", "spec": {{"a": {deep}}}}}')
        with pytest.raises(CorruptError):
            run.read_spec()
    (run.path / "environment.json").write_text(json.dumps({"python": "3" * 2**22}))
    with pytest.raises(CorruptError, match="nothing that pernn wrote"):
        run.read_environment()


def test_what_is_no_ordinary_file_is_not_waited_for(run, tmp_path):
    (run.path / "result.json").unlink()
    os.mkfifo(run.path / "result.json")
    with pytest.raises(CorruptError, match="not an ordinary file"):
        run.read_result()
    assert read_status(tmp_path, RUN).state == "damaged"
    with pytest.raises(CorruptError, match="not an ordinary file"):
        read_whole(Path("/dev/zero"))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(CorruptError, match="nothing that pernn wrote"):
        read_whole(tmp_path / "sparse")


@pytest.mark.parametrize(
    "name", ["lock", "metrics.jsonl", "journal.jsonl", "checkpoints", ".", ".."]
)
def test_links_are_not_followed(run, tmp_path, name):
    place, target = Path(os.path.normpath(run.path / name)), tmp_path / "outside"
    if place.exists():
        place.rename(target)
    place.symlink_to(target)
    with pytest.raises(StoreError, match="is a symbolic link"), run.locked():
        pass
    assert name in ("lock", ".", "..") or not target.exists()


def test_links_of_sweeps_and_folders_that_are_no_checkpoints_are_left_alone(tmp_path):
    for number in ("5", "x", "0000000001", "٠٠٠٠٠٠٠٠١", "000000003"):
        (tmp_path / f"update-{number}").mkdir()
    assert CheckpointFolder(tmp_path).updates() == [3]
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "sweeps" / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="is a symbolic link"):
        save_sweep(tmp_path, Sweep("a", "b", "demo", {}, []))
    assert not list((tmp_path / "outside").iterdir())


def test_a_disk_that_takes_a_part_of_a_line_is_full(run, monkeypatch):
    # The kernel writes what fits and says how much that was.
    monkeypatch.setattr(module.os, "write", lambda file, line: len(line) - 1)
    monkeypatch.setattr(module.os, "pwrite", lambda file, line, place: len(line) - 1)
    with pytest.raises(StoreError, match="No space left"):
        run.append_metrics({"update": 1})
    with pytest.raises(StoreError, match="No space left"):
        run.note("stopped")


def test_a_damaged_journal_is_read_as_far_as_it_goes(run, tmp_path):
    (run.path / "result.json").unlink()
    (run.path / "journal.jsonl").write_bytes(b'{"event": "sta\n\xff\n{"event": "stopped"}\n[]\n{')
    assert run.read_journal() == [{"event": "stopped"}]
    assert read_status(tmp_path, RUN).state == "stopped"


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"runs": ["../../x"]}, CorruptError),
        ({"runs": [1]}, CorruptError),
        ({"runs": "x"}, CorruptError),
        ({"name": "../x"}, CorruptError),
        ({"name": "other"}, CorruptError),
        ({"overrides": []}, CorruptError),
        ({"experiment": None}, CorruptError),
        ({"more": 1}, CorruptError),
        ({"format": 99}, VersionError),
    ],
)
def test_damaged_lists_are_refused(tmp_path, values, error):
    path = save_sweep(tmp_path, Sweep("a", "b", "demo", {}, [RUN])) / "sweep.json"
    old = {key: value for key, value in json.loads(path.read_text()).items() if key != "checksum"}
    path.write_text(json.dumps({**old, **values}))
    with pytest.raises(error):
        load_sweep(tmp_path, "a")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"metrics": {"loss": 10**400}}, "holds a number of over 64 bits"),
        ({"metrics": {"loss": "0.5"}}, "metrics.loss: .*, got '0.5'"),
        ({"metrics": {"loss": [0.5]}}, r"metrics.loss: .*, got \[0.5\]"),
        ({"metrics": {"loss": True}}, "metrics.loss"),
        ({"metrics": [0.5]}, r"metrics: .*, got \[0.5\]"),
        ({"metrics": {"\ud800": 1}}, "hex escape"),
        ({"tables": [1, 2]}, r"tables: .*, got \[1, 2\]"),
        ({"tables": {"t": [1]}}, r"tables.t: .*, got \[1\]"),
        ({"tables": {"t": {"a": 1}}}, "tables.t.a: .*, got 1"),
        ({"tables": {"t": {"a": [1, {}]}}}, r"tables.t.a.1\.\w+: .*, got {}"),
        ({"tables": {"t": {"a": [1], "b": []}}}, "tables.t: .*equally long"),
        ({"tables": {"t": {"a": ["\ud800"]}}}, "hex escape"),
        ({"num_parameters": "many"}, "num_parameters: .*, got 'many'"),
        *((text, "result.json") for text in ("", "{", "[]", "null", "{}", "[" * 100_000)),
        *((text, "result.json") for text in ('{"format": true}', '{"format": 1}')),
    ],
)
def test_a_result_of_wrong_types_is_damage_whatever_its_checksum(run, tmp_path, values, said):
    if isinstance(values, dict):
        whole = {"format": 1, "fingerprint": RUN, "metrics": {"loss": 0.5}, **values}
        values = json.dumps(sealed(whole))
    path = run.path / "result.json"
    path.write_text(values)
    with pytest.raises(CorruptError, match=said) as caught:
        run.read_result()
    assert str(path) in str(caught.value)
    assert "\\n" not in str(caught.value)
    assert read_status(tmp_path, RUN).state == "damaged"
