"""Archives: equal bytes for equal runs; nothing but runs of the contract comes out of one."""

import io
import json
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pernn.errors import BusyError, ConfigError, CorruptError, StoreError, VersionError
from pernn.store import (
    Archived,
    Checkpoint,
    RunDirectory,
    Sweep,
    create_archive,
    open_url,
    read_archive,
    save_sweep,
)
from pernn.store import write_archive as write
from pernn.store.files import checksum

SPECS = [{"seed": seed} for seed in range(3)]
RUNS = sorted(checksum(spec)[:16] for spec in SPECS)
SWEEP = Sweep("study-demo", "study", "demo", {}, RUNS)


def fill(root: Path) -> Path:
    for spec in SPECS:
        run = RunDirectory(root, checksum(spec)[:16])
        with run.locked():
            run.write_spec(spec)
            run.write_environment({"threads": 1})
            run.append_metrics({"update": 1, "loss": 0.5})
            run.checkpoints.save(Checkpoint(1, {"model.w": np.ones(3)}, run.metrics_so_far()))
            run.note("finished", update=1)
            run.write_result({"fingerprint": run.fingerprint, "metrics": {"loss": 0.25}})
    save_sweep(root, SWEEP)
    return root


def pack(root: Path, **options: bool) -> bytes:
    file = io.BytesIO()
    assert write(root, SWEEP, RUNS, file, **options) == Archived(RUNS, {})
    return file.getvalue()


def unpack(root: Path, content: bytes):
    return read_archive(root, io.BytesIO(content), "made.tar")


def tree(root: Path) -> dict[str, bytes]:
    passing = re.compile(r"lock|lease-\d+\.json")
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    files = [path for path in found if not passing.fullmatch(path.name)]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    root = fill(tmp_path / "here")
    content = pack(root)
    assert content == pack(root)
    found = unpack(tmp_path / "there", content)
    assert (found.sweep, found.sweep_fate) == (SWEEP, "unpacked")
    assert found.fates == dict.fromkeys(RUNS, "unpacked")
    assert tree(tmp_path / "there") == tree(root)
    assert pack(tmp_path / "there") == content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert {(one.mtime, one.uid, one.uname, one.mode) for one in tar} == {(0, 0, "", 0o644)}


def test_without_checkpoints(tmp_path: Path) -> None:
    root = fill(tmp_path / "here")
    unpack(tmp_path / "there", pack(root, checkpoints=False))
    names = tree(tmp_path / "there")
    assert names == {name: one for name, one in tree(root).items() if "checkpoints" not in name}


def test_what_is_there_is_kept_and_compared(tmp_path: Path) -> None:
    root = fill(tmp_path / "here")
    content = pack(root)
    there = tmp_path / "there"
    unpack(there, content)
    other = RunDirectory(there, RUNS[0])
    other.write_result({"fingerprint": RUNS[0], "metrics": {"loss": 0.75}})
    (there / "runs" / RUNS[1] / "result.json").write_text("{")
    before = tree(there)
    found = unpack(there, content)
    assert found.fates == {RUNS[0]: "different", RUNS[1]: "different", RUNS[2]: "identical"}
    assert found.sweep_fate == "identical"
    assert tree(there) == before
    save_sweep(there, Sweep(SWEEP.name, "study", "demo", {"seed": 1}, RUNS))
    assert unpack(there, content).sweep_fate == "different"


def test_a_running_run_is_not_packed_half_way(tmp_path: Path) -> None:
    root = fill(tmp_path)
    run = RunDirectory(root, RUNS[0])
    (run.path / "result.json").unlink()
    with run.locked(), pytest.raises(BusyError):
        pack(root)


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name: str, content: bytes) -> bytes:
    return header(name, size=len(content)) + content + b"\0" * (-len(content) % 512)


RUN = f"runs/{RUNS[0]}"
HOSTILE: dict[str, bytes] = {
    "absolute": member("/etc/pernn-was-here", b"x"),
    "parent": member("../../escaped", b"x"),
    "parent inside": member(f"{RUN}/../../../escaped", b"x"),
    "other run": member("runs/ZZZ/spec.json", b"{}"),
    "other file": member(f"{RUN}/run.sh", b"x"),
    "newline": member(f"{RUN}/spec.json\n", b"{}"),
    "symbolic link": header(f"{RUN}/spec.json", tarfile.SYMTYPE, link="/etc/passwd"),
    "linked folder": header(RUN, tarfile.SYMTYPE, link="/tmp"),  # noqa: S108
    "hard link": header(f"{RUN}/spec.json", tarfile.LNKTYPE, link="/etc/passwd"),
    "device": header(f"{RUN}/spec.json", tarfile.CHRTYPE),
    "block device": header(f"{RUN}/spec.json", tarfile.BLKTYPE),
    "pipe": header(f"{RUN}/spec.json", tarfile.FIFOTYPE),
    "sparse": header(f"{RUN}/spec.json", tarfile.GNUTYPE_SPARSE),
    "long name": header("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=2**40),
    "pax header": header("pax", tarfile.XHDTYPE, size=2**40),
    "bomb": header(f"{RUN}/metrics.jsonl", size=2**60),
    "negative": header(f"{RUN}/metrics.jsonl", size=-512),
    "twice": 2 * member(f"{RUN}/spec.json", b"{}"),
    "cut short": header(f"{RUN}/metrics.jsonl", size=1000) + b"x" * 10,
    "noise": bytes(range(256)) * 8,
    "folder": header(f"{RUN}/scripts", tarfile.DIRTYPE),
    "second list": member("sweep.json", b"{}"),
    "large environment": header(f"{RUN}/environment.json", size=2**22 + 1),
    "large result": header(f"{RUN}/result.json", size=2**26 + 1),
    "after the end": b"\0" * 1024 + member(f"{RUN}/spec.json", b"{}"),
    "zeros without end": b"\0" * 2**21,
    "one end block": b"",
}
DAMAGED: dict[str, bytes] = {
    "edited spec": member(
        f"{RUN}/spec.json", json.dumps({"format": 1, "fingerprint": RUNS[0], "spec": {}}).encode()
    ),
    "no spec": member(f"{RUN}/metrics.jsonl", b""),
    "pickle": member(f"{RUN}/checkpoints/update-000000001/tensors.safetensors", b"cos\nsystem\n"),
    "newer": member(f"{RUN}/spec.json", b'{"format": 9}'),
}


def without(content: bytes, name: str) -> bytes:
    """A tar without some of its files."""
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        kept = [one for one in tar if name not in one.name]
        parts = [member(one.name, tar.extractfile(one).read()) for one in kept]
    return b"".join(parts) + bytes(1024)


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_run_is_left_out_and_the_others_come(tmp_path: Path, kind: str) -> None:
    root = fill(tmp_path / "here")
    content = without(pack(root), RUNS[0]).removesuffix(bytes(1024)) + DAMAGED[kind] + bytes(1024)
    there = tmp_path / "there"
    found = unpack(there, content)
    assert found.fates == {
        RUNS[0]: "damaged",
        RUNS[1]: "unpacked",
        RUNS[2]: "unpacked",
    }
    (said,) = found.damage.values()
    assert "runs/" in said
    assert "unpacking" not in said
    assert found.sweep_fate == "unpacked"
    whole = {name: one for name, one in tree(root).items() if RUNS[0] not in name}
    assert tree(there) == whole


@pytest.mark.parametrize("part", ["tensors.safetensors", "state.json", "result.json", "spec.json"])
def test_what_is_damaged_is_not_packed(tmp_path: Path, part: str) -> None:
    root = fill(tmp_path / "here")
    (path,) = (root / "runs" / RUNS[1]).rglob(part)
    path.write_bytes(path.read_bytes()[:-3])
    file = io.BytesIO()
    made = write(root, SWEEP, RUNS, file)
    assert made.runs == [RUNS[0], RUNS[2]]
    assert str(path.parent) in made.left_out[RUNS[1]]
    assert unpack(tmp_path / "there", file.getvalue()).fates == dict.fromkeys(made.runs, "unpacked")


def test_a_checkpoint_that_is_half_gone_is_not_packed_or_is_not_asked_for(tmp_path: Path) -> None:
    root = fill(tmp_path / "here")
    (path,) = (root / "runs" / RUNS[1]).rglob("tensors.safetensors")
    path.unlink()
    file = io.BytesIO()
    assert "is missing" in write(root, SWEEP, RUNS, file).left_out[RUNS[1]]
    pack(root, checkpoints=False)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.TGZ"])
def test_the_ending_decides_the_form_and_the_content_how_it_is_read(
    tmp_path: Path, name: str
) -> None:
    root, path = fill(tmp_path / "here"), tmp_path / name
    made = set()
    for _ in range(2):
        with create_archive(str(path)) as file:
            write(root, SWEEP, RUNS, file)
        made.add(path.read_bytes())
    (content,) = made
    with tarfile.open(path, "r:" if name == "a.tar" else "r:gz") as tar:
        assert len(tar.getnames()) == 1 + 8 * len(RUNS)
    assert unpack(tmp_path / "there", content).fates == dict.fromkeys(RUNS, "unpacked")
    assert tree(tmp_path / "there") == tree(root)
    for damaged in (content[:-9], content[:-4] + bytes(4)) if name != "a.tar" else ():
        with pytest.raises(CorruptError, match="gzip"):
            unpack(tmp_path / "elsewhere", damaged)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.xz", "a", "a.gz", "tar"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(ConfigError, match=r"ends in one of \.tar, \.tar\.gz, \.tgz"),
        create_archive(str(tmp_path / name)),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_an_archive_packed_again_by_tar_is_read(tmp_path: Path) -> None:
    root = fill(tmp_path / "here")
    unpacked, again = tmp_path / "unpacked", io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(pack(root))) as tar:
        for one in tar.getmembers():
            place = unpacked / one.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(tar.extractfile(one).read())
    # With folders, owners, dates and a padded last record.
    with tarfile.open(fileobj=again, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(unpacked / "sweep.json", "sweep.json")
        tar.add(unpacked / "runs", "runs")
    assert unpack(tmp_path / "there", again.getvalue()).fates == dict.fromkeys(RUNS, "unpacked")


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives_are_refused_and_leave_nothing(tmp_path: Path, kind: str) -> None:
    manifest = (save_sweep(tmp_path / "made", SWEEP) / "sweep.json").read_bytes()
    outside = tmp_path / "outside"
    outside.mkdir()
    there = outside / "results"
    end = b"\0" * (512 if kind == "one end block" else 1024)
    with pytest.raises(StoreError) as caught:
        unpack(there, member("sweep.json", manifest) + HOSTILE[kind] + end)
    assert "\n" not in str(caught.value)
    assert {str(path.relative_to(outside)) for path in outside.rglob("*")} == {
        "results",
        "results/runs",
    }
    assert not Path("/etc/pernn-was-here").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda tar: tar[:-2000], CorruptError),
        (lambda tar: tar[512:], CorruptError),
        (lambda tar: b"", CorruptError),
        (lambda tar: tar.replace(b"study-demo", b"study/demo"), CorruptError),
        (lambda tar: tar + b"x", CorruptError),
        (lambda tar: tar + bytes(512) + tar, CorruptError),
        (lambda tar: tar.replace(b'"format": 1', b'"format": 9'), VersionError),
        (lambda tar: __import__("lzma").compress(tar), CorruptError),
    ],
)
def test_damaged_archives_are_refused(
    tmp_path: Path, change: Callable[[bytes], bytes], error: type[Exception]
) -> None:
    content = change(pack(fill(tmp_path / "here")))
    with pytest.raises(error):
        unpack(tmp_path / "there", content)
    # Whole or not at all, run by run.
    for run in (tmp_path / "there" / "runs").iterdir():
        assert tree(run) == tree(tmp_path / "here" / "runs" / run.name)


def test_links_in_the_results_directory_are_not_followed(tmp_path: Path) -> None:
    content = pack(fill(tmp_path / "here"))
    there, outside = tmp_path / "there", tmp_path / "outside"
    there.mkdir(), outside.mkdir()
    (there / "runs").symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        unpack(there, content)
    (there / "runs").unlink()
    (there / "runs").mkdir()
    (there / "runs" / RUNS[0]).symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        unpack(there, content)
    assert not list(outside.iterdir())


def test_remains_of_a_killed_unpacking_are_swept_up(tmp_path: Path) -> None:
    remains = tmp_path / "there" / ".unpacking.77.partial"
    alive = tmp_path / "there" / ".unpacking.78.partial"
    remains.mkdir(parents=True), alive.mkdir()
    os.utime(remains, (0, 0))
    unpack(tmp_path / "there", pack(fill(tmp_path / "here")))
    assert not remains.exists()
    assert alive.exists()


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out" / "a.tar"
    path.parent.mkdir()
    with open_url(str(path), "wb") as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    path.unlink()
    with pytest.raises(StoreError, match="sweep"), open_url(str(path), "wb") as file:
        write(tmp_path, SWEEP, RUNS, file)
    assert not list(path.parent.iterdir())
    with open_url("memory://kept/a.tar", "wb") as file:
        file.write(b"whole")
    with open_url("memory://kept/a.tar", "rb") as file:
        assert file.read() == b"whole"
