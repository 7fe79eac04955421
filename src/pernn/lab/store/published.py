"""Published trials and registered plans, which a wheel brings with it.

Trials are a Parquet file per sweep, a row per trial and a column per value; nothing is unpickled.
The contract is docs/evidence/README.md.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from pernn.errors import (
    ConfigError,
    CorruptError,
    MachineError,
    StoreError,
    counted,
    install_command,
)
from pernn.lab.config import Config, checksum, leaves

from .files import (
    CHECKSUM,
    FORMAT,
    MAX_BYTES,
    MAX_RESULT_BYTES,
    check_format,
    parse_json,
    read_json,
    read_whole,
    sealed,
    to_json,
    write_atomically,
)
from .run_directory import EvenTable, Result, check_values
from .sweeps import NAME, Sweep, as_sweep

KINDS = {bool: "bool", int: "int64", float: "double", str: "string"}
"""Type of a value → Parquet's."""
RUN, REST = "run", "rest"
"""Columns of the trials' names, and of what no other column can hold, as JSON."""
ABOUT = b"pernn"
"""Key of the file's own description."""
MIN_BYTES = 2**12
"""Length of a trial in memory, at least."""
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OSError)
"""What the content of a damaged file raises, beside Arrow's own."""

Keys = tuple[str, ...]


class TrialValues(BaseModel):
    """The values of a published trial."""

    model_config = ConfigDict(strict=True, extra="forbid")

    spec: dict[str, Any]
    result: Result
    environment: dict[str, Any]
    curves: EvenTable
    core_seconds: EvenTable


def to_parquet(trials: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> bytes:
    """Return trials as a Parquet file's bytes."""
    pa, parquet = load_pyarrow()
    count: dict[Keys, Counter[str]] = defaultdict(Counter)
    for one in trials:
        for keys, value in leaves(one):
            if kind := _kind(value):
                count[keys][kind] += 1
    kinds = {keys: some.most_common(1)[0][0] for keys, some in count.items()}
    columns: dict[str, Any] = {}
    held: dict[str, Keys] = {}
    pool = pa.system_memory_pool()  # the usual one keeps what it grew by
    # Single values before lists: they are what a table is looked at for.
    for keys in sorted(kinds, key=lambda keys: (kinds[keys].startswith("list"), *_place(keys))):
        *_, name = _place(keys)
        while name in held or name in (REST, CHECKSUM):
            name = f"{keys[-2]}.{name}"
        inner = pa.type_for_alias(kinds[keys].removeprefix("list "))
        values = (_at(one, keys) for one in trials)
        cells = [value if _kind(value) == kinds[keys] else None for value in values]
        columns[name] = pa.array(
            cells, inner if kinds[keys] == inner else pa.list_(inner), memory_pool=pool
        )
        held[name] = keys
    left = ({k: v for k, v in leaves(one) if _kind(v) != kinds.get(k)} for one in trials)
    columns[REST] = [to_json(_nested(one), indent=None).decode() for one in left]
    columns[CHECKSUM] = [checksum(one) for one in trials]
    table, sink = pa.table(columns), pa.BufferOutputStream(pool)
    measured = [name for name, keys in held.items() if kinds[keys] == "list double"]
    # One page per column, as trials repeat one another.
    with parquet.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=9,
        use_dictionary=False,
        # Tables are a tenth smaller so; curves, whose numbers repeat, would be larger.
        use_byte_stream_split=[f"{n}.list.element" for n in measured if n.startswith("tables.")],
        write_statistics=False,
        store_schema=False,
        memory_pool=pool,
        write_page_checksum=True,
        data_page_size=MAX_BYTES,
    ) as writer:
        writer.write_table(table, row_group_size=2**20)
        described = to_json({**about, "columns": held}, indent=None)
        writer.add_key_value_metadata({ABOUT: described})
    return bytes(sink.getvalue())


def open_parquet(content: bytes) -> tuple[Any, dict[str, Any]]:
    """Open a Parquet file for this thread, with its description."""
    pa, parquet = load_pyarrow()
    # `read_table` starts threads, which now and then abort a process that ends soon after
    # (apache/arrow#34314, a status of -6 after all was said).
    file = parquet.ParquetFile(
        pa.BufferReader(content), page_checksum_verification=True, pre_buffer=False
    )
    found = file.metadata
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    _require_plausible(sum(one.total_byte_size for one in groups) + MIN_BYTES * found.num_rows)
    return file, parse_json((found.metadata or {})[ABOUT])


def read_table(file: Any, columns: Sequence[str] | None = None) -> Any:
    """Return columns of an open file as an Arrow table."""
    pa, _ = load_pyarrow()
    batches, size = [], 0
    # A few rows at a time: a word that a dictionary repeats is far longer here than in the file.
    for batch in file.iter_batches(64, columns=columns, use_threads=False):
        size += batch.nbytes
        _require_plausible(size)
        batches.append(batch)
    return pa.Table.from_batches(batches)


def _require_plausible(num_bytes: int) -> None:
    if num_bytes > MAX_BYTES:
        raise ValueError("larger than any that pernn wrote")


def from_table(table: Any, held: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return a table's trials, given the keys that each column holds."""
    rows = [dict(leaves(parse_json(text.encode()))) for text in table.column(REST).to_pylist()]
    for name, keys in held.items():
        for row, value in zip(rows, table.column(name).to_pylist(), strict=True):
            if value is not None:
                row[tuple(keys)] = value
    trials = [_nested(row) for row in rows]
    for run, one, expected in zip(
        table.column(RUN).to_pylist(), trials, table.column(CHECKSUM).to_pylist(), strict=True
    ):
        if checksum(one) != expected:
            raise ValueError(f"trial {run} was changed since it was published")
    return trials


def _place(keys: Keys) -> tuple[int, Keys, str]:
    """Return where a value's column comes, and the name that it has."""
    part, *inner = keys
    if keys == ("result", "fingerprint"):
        return 0, keys, RUN
    if part == "spec":
        return 1, keys, ".".join(inner)
    if part == "result":
        return 2, keys, ".".join(inner[inner[0] == "metrics" :])
    return 3, keys, ".".join(keys)


def _kind(value: Any) -> str:
    """Return the type of the column that holds a value to the last bit; empty if none does."""
    if isinstance(value, list):
        types = {*map(type, value)} - {type(None)}
        some = [one for one in value if one is not None] if types == {int} else []
        kinds = {_kind(one) for one in (min(some), max(some))} if some else {*map(KINDS.get, types)}
        return f"list {kinds.pop()}" if len(kinds) == 1 and kinds <= {*KINDS.values()} else ""
    small = type(value) is not int or abs(value) < 2**63
    return KINDS.get(type(value), "") if small else ""


def _at(values: Any, keys: Keys) -> Any:
    """Return the value to which keys lead, `None` if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _nested(leaves: Mapping[Keys, Any]) -> dict[str, Any]:
    """Return values with their keys in order."""
    values: dict[str, Any] = {}
    for (*outer, last), value in sorted(leaves.items(), key=itemgetter(0)):
        inner = values
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return values


def load_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its module for Parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MachineError(f"Parquet needs pyarrow: {install_command('parquet')}") from None
    return pa, parquet


FOLDER, VARIABLE = "evidence", "PERNN_EVIDENCE"
SHIPPED = Path(__file__).parents[1] / "published"
"""Trials and plans that a wheel brings with it."""
ENDING = ".parquet"
PUBLISHED_FORMAT = 2
"""Version of a file of published trials: in the first, values were JSON in six columns."""
IDENTITY = ("experiment", "scale", "overrides")
"""What says which sweep a file is of."""


def evidence_folder() -> Path:
    """Return where published trials are looked for: `PERNN_EVIDENCE`, or `evidence` here."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


def _with_shipped(folder: Path) -> list[Path]:
    """Return a folder, and for `evidence` here what a wheel brought with it."""
    is_usual = folder == Path(FOLDER) and VARIABLE not in os.environ
    return [folder, SHIPPED] if is_usual and SHIPPED.is_dir() else [folder]


def where_published(folder: Path | None) -> str:
    """Return where published trials are looked for, and how to get some."""
    if folder is None:
        return "published trials are not counted"
    places = " and ".join(str(one.absolute()) for one in _with_shipped(folder))
    there = counted(len(list_publications(folder)), "published sweep")
    return (
        f"published trials are looked for in {places} (there: {there}); {VARIABLE} "
        f"names another folder, such as `{FOLDER}` of a clone of pernn"
    )


def list_publications(folder: Path | None) -> list[Path]:
    """List files of published trials by name.

    For `evidence` here also those that a wheel brought with it.
    """
    folders = _with_shipped(folder) if folder else []
    found = [path for one in folders for path in one.glob(f"*{ENDING}")]
    return sorted((p for p in found if NAME.fullmatch(p.stem)), key=lambda path: path.stem)


def list_published(folder: Path | None, on_warning: Callable[[str], None]) -> set[str]:
    """Return which runs are published, or none with a warning."""
    try:
        return {r for path in list_publications(folder) for r in describe_publication(path).runs}
    except (MachineError, StoreError) as error:
        on_warning(f"published trials do not count: {error}")
        return set()


def describe_publication(path: Path) -> Sweep:
    """Return a file's sweep with the trials that it holds."""
    with _reading(path) as (file, about):
        return _sweep_of(path, about, read_table(file, [RUN]))


def read_publication(path: Path, wanted: set[str] | None = None) -> list[dict[str, Any]]:
    """Return checked trials of a file as nested values."""
    with _reading(path) as (file, about):
        table = read_table(file)
        runs = _sweep_of(path, about, table).runs
        rows = [number for number, run in enumerate(runs) if wanted is None or run in wanted]
        trials = from_table(table.take(rows), dict(about["columns"]))
        for one in trials:
            check_values(TrialValues, one)
            run, seconds = one["result"]["fingerprint"], one["core_seconds"]
            if not checksum(one["spec"]).startswith(run):
                raise ValueError(f"trial {run}: the spec is that of another run")
            one["core_seconds"] = dict(zip(seconds["runs"], seconds["seconds"], strict=True))
        return trials


def write_publication(path: Path, sweep: Sweep, trials: Sequence[Mapping[str, Any]]) -> None:
    """Write a sweep's trials in one step."""
    about = {"format": PUBLISHED_FORMAT, **{key: getattr(sweep, key) for key in IDENTITY}}
    rows = []
    for one in trials:
        runs = sorted(one["core_seconds"])
        seconds = {"runs": runs, "seconds": [one["core_seconds"][run] for run in runs]}
        rows.append({**one, "core_seconds": seconds})
    write_atomically(path, to_parquet(rows, about))


def _sweep_of(path: Path, about: Mapping[str, Any], table: Any) -> Sweep:
    runs = table.column(RUN).to_pylist()
    if len({*runs}) < len(runs):
        raise ValueError("a trial stands in it twice")
    own = {key: about[key] for key in IDENTITY}
    return as_sweep({"name": path.stem, **own, "runs": runs})


@contextmanager
def _reading(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a file of published trials, with its description; name whatever is wrong in it."""
    pa, _ = load_pyarrow()
    content = read_whole(path)
    try:
        file, about = open_parquet(content)
        check_format(path, about, PUBLISHED_FORMAT)
        yield file, about
    except (pa.ArrowException, *DAMAGE) as error:
        said = str(error).partition("\n")[0]
        raise CorruptError(
            f"{path}: not a file of published trials: {said}; restore it, or delete it and "
            "publish again"
        ) from None


VARIABLE_OF_PLANS, FOLDERS = "PERNN_PLANS", ("plans", "docs/evidence/plans")
PLAN_ENDING = ".lock.json"


class RegisteredClaim(Config):
    """A claim as it was registered."""

    digest: str  # of its statement, its predicate and its choice
    statement: str
    measure: str  # the column that decides it
    primary: bool  # whether it is in the family of primary claims
    # Smallest effect seen with 80 % power, in standard deviations of the values per seed.
    seen: float | None


class RegisteredSweep(Config):
    """A sweep as registered: fingerprints of trials, rule and claims."""

    name: str
    experiment: str
    scale: str
    overrides: dict[str, Any]
    rule: str
    runs: tuple[str, ...]
    claims: dict[str, RegisteredClaim]


class Registration(Config):
    """The content of a lock file."""

    title: str
    date: str  # when it was registered, in UTC, as trials have it in `environment.json`
    version: str | None
    commit: str | None  # that of a source checkout
    pilots: tuple[int, ...]  # seeds that were looked at before
    sweeps: tuple[RegisteredSweep, ...]
    expectations: tuple[dict[str, Any], ...]  # in the form of docs/evidence/expectations.json

    def to_json(self) -> bytes:
        """Return the file's content, whose checksum notices a change."""
        return to_json(sealed({"format": FORMAT, **self.dump()}))


def plan_folders() -> list[Path]:
    """List where plans are looked for.

    `PERNN_PLANS`; or what a wheel brought with it, then `plans` and `docs/evidence/plans` here.
    """
    named, shipped = os.environ.get(VARIABLE_OF_PLANS), SHIPPED / "plans"
    return [Path(named)] if named else [*[shipped] * shipped.is_dir(), *map(Path, FOLDERS)]


def read_registrations() -> dict[str, Registration]:
    """Read all registered plans, by name."""
    paths = [path for folder in plan_folders() for path in sorted(folder.glob(f"*{PLAN_ENDING}"))]
    found: dict[str, Registration] = {}
    for path in paths:
        values = read_json(path, MAX_RESULT_BYTES)
        check_format(path, values)
        del values["format"]
        try:
            plan = Registration.load(values)
        except ConfigError as error:
            raise CorruptError(f"{path}: not a registered plan: {error}") from None
        name = path.name.removesuffix(PLAN_ENDING)
        # A plan of one's own may have the name of one that came with the package.
        found[name if found.get(name, plan) == plan else str(path.with_name(name))] = plan
    return found
