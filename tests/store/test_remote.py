"""Files at addresses: whole or absent, and one line for what does not work."""

import builtins
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from pernn.errors import ConfigError, MachineError, StoreError
from pernn.reports import export_records
from pernn.store import hide_credentials, write_anywhere

RECORDS = [{"run": "a" * 16, "loss": 0.1, "tables": {}}, {"run": "b" * 16, "seed": 2}]


@pytest.mark.parametrize("place", ["{here}/a/b.csv", "file://{here}/a/b.csv"])
def test_places_of_this_machine(tmp_path: Path, place: str) -> None:
    assert export_records(RECORDS, place.format(here=tmp_path)) == 2
    assert (tmp_path / "a/b.csv").read_text().startswith("run,loss,seed\n")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.csv"]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_an_address_has_what_a_path_has(tmp_path: Path, form: str) -> None:
    export_records(RECORDS, tmp_path / f"x.{form}")
    export_records(RECORDS, f"memory://test_remote/x.{form}")
    with fsspec.open(f"memory://test_remote/x.{form}", "rb") as file:
        assert file.read() == (tmp_path / f"x.{form}").read_bytes()


def test_a_write_that_breaks_leaves_the_old(monkeypatch: pytest.MonkeyPatch) -> None:
    write_anywhere("memory://test_remote/kept.csv", b"old")

    def breaks(self: object) -> None:
        raise OSError("the line was cut")

    with monkeypatch.context() as patch:
        patch.setattr("fsspec.implementations.memory.MemoryFile.commit", breaks)
        with pytest.raises(StoreError, match=r"kept\.csv: cannot be written: the line was cut"):
            write_anywhere("memory://test_remote/kept.csv", b"new")
    assert MemoryFileSystem().cat("/test_remote/kept.csv") == b"old"


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("nonsense://a/b.csv", ConfigError, "Protocol not known: nonsense"),
        ("memory://a/b.xls", ConfigError, "the ending must be one of"),
        ("ftp://me:secret@127.0.0.1:9/b.csv", StoreError, "cannot be written"),
    ],
)
def test_what_cannot_be_meant_or_reached(place: str, error: type, said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        export_records(RECORDS, place)
    assert "secret" not in str(raised.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {**known_implementations["s3"], "class": "absent_package.System"}
    monkeypatch.setitem(known_implementations, "s3", absent)
    with pytest.raises(MachineError, match=r"s3:// needs another package: Install s3fs"):
        write_anywhere("s3://bucket/records.csv", b"")


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("fsspec"):
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MachineError, match=r"pernn\[remote\]"):
        write_anywhere("memory://a/b.csv", b"")


def test_credentials_are_left_out() -> None:
    assert hide_credentials("see ftp://me:secret@host/a@b") == "see ftp://host/a@b"
