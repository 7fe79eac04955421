"""Strict frozen parameters, and import of the parts that they name."""

import hashlib
import json
import os
import reprlib
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from inspect import get_annotations, getattr_static
from itertools import islice
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_serializer
from pydantic.fields import FieldInfo

from pernn.errors import ConfigError, MachineError

MAX_FILE_BYTES = 1_000_000
"""A spec is a page of text; a larger file is a mistake or an attack."""

MAX_DOTS = 64
"""Dots on a line of TOML: the time to parse a dotted key grows with a power of their number."""

MAX_PROBLEMS = 10
"""Complaints of one validation that are spelt out."""

C = TypeVar("C", bound="Config")
K = TypeVar("K")
V = TypeVar("V")


class Config(BaseModel):
    """Base of all parameters: frozen, strict, without NaN or infinity.

    Attributes:
        younger: Fields that are left out of the file at their default, as they are younger than
            digests that are published.
    """

    younger: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidConfigError(type(self), error) from None

    # Tells pydantic that validation need not pass through `__init__`: `load` keeps JSON's rules
    # (a list is a tuple) and a complaint is not explained twice.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_serializer(mode="wrap")
    def _without_younger(self, serialise: Callable[[Any], Any]) -> dict[str, Any]:
        values: dict[str, Any] = serialise(self)
        for name in self.younger:
            if values[name] == type(self).model_fields[name].default:
                del values[name]
        return values

    @classmethod
    def load(cls: type[C], values: Mapping[str, Any]) -> C:
        """Build from plain JSON values.

        Raises:
            ConfigError: On an unknown key, a wrong type or a value out of range; all are listed.
        """
        try:
            # What JSON has not, such as a date of TOML, is text.
            return cls.model_validate_json(json.dumps(values, default=str))
        except ValidationError as error:
            raise InvalidConfigError(cls, error) from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{cls.__name__}: {error}") from None

    def dump(self) -> dict[str, Any]:
        """Return plain JSON values, which `load` turns back."""
        return self.model_dump(mode="json", serialize_as_any=True)

    def override(self: C, assignments: Mapping[str, Any]) -> C:
        """Replace values by dotted path, `{"core.hidden_size": 256}`.

        A new `kind` keeps the values of the old one that it has too, and its own defaults else.

        Raises:
            ConfigError: If a path names nothing or the result is invalid.
        """
        values = self.dump()
        # A part's kind decides which keys it has, so kinds are replaced first.
        for path, value in sorted(assignments.items(), key=lambda item: not is_kind(item[0])):
            *parents, leaf = path.split(".")
            node = values
            for depth, key in enumerate(parents):
                if not isinstance(node.get(key), dict):
                    known = ", ".join(node)
                    here = ".".join(parents[:depth]) or "the spec"
                    hint = suggestion(leaf, (), flatten(values))
                    raise ConfigError(
                        f"{path} is invalid: {here} has no part {key!r}{hint} (known: {known})"
                    )
                node = node[key]
            if leaf == "kind" and node.get("kind") != value:
                shared = _keys_of_kind(self._part_at(parents), value)
                for key in node.keys() - shared:
                    del node[key]
            node[leaf] = value
        try:
            return type(self).load(values)
        except InvalidConfigError as error:
            raise ConfigError(error.told(flatten(values))) from None

    def has(self, path: str) -> bool:
        """Return whether a dotted path names a value of this config.

        A value that is left out of the file while it is absent counts, too.
        """
        return self._field(path) is not None

    def takes_list(self, path: str) -> bool:
        """Return whether the value at a dotted path may be a list."""
        field = self._field(path)
        kinds = () if field is None else (field.annotation, *get_args(field.annotation))
        return any(get_origin(kind) in (tuple, list) for kind in kinds)

    def _field(self, path: str) -> FieldInfo | None:
        *parents, leaf = path.split(".")
        part = self._part_at(parents)
        return type(part).model_fields.get(leaf) if isinstance(part, Config) else None

    def _part_at(self, keys: Sequence[str]) -> Any:
        """Return the part at a path; `None` if there is none."""
        return reduce(lambda part, key: getattr(part, key, None), keys, cast(Any, self))

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits of the SHA-256 of the canonical JSON."""
        return fingerprint(self.dump())


def fingerprint(values: Mapping[str, Any]) -> str:
    """Name dumped values as `Config.fingerprint` does, without loading them."""
    return checksum(values)[:16]


def checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values as JSON, keys sorted, without spaces."""
    return hashlib.sha256(_CANONICAL.encode(values).encode()).hexdigest()


# Made once: a report reads tens of thousands of files.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_kind(path: str) -> bool:
    """Return whether a dotted path names a part's kind."""
    return path.rpartition(".")[2] == "kind"


def _keys_of_kind(part: Any, kind: Any) -> Set[str]:
    """List the keys of another kind of the same registry; none if there is no such kind."""
    for registry in Registry.all:
        if isinstance(part, registry.base) and isinstance(kind, str):
            return set(registry.find(kind).model_fields)
    return frozenset()


class Registry(Generic[C]):
    """The parts of one sort by `kind`, imported when they are named.

    Args:
        group: Entry point group in which other packages register their own, `pernn.cores`.
        builtin: Kind → `module:Config`.
        base: Class that every config of this sort derives from.
    """

    all: ClassVar[list["Registry[Any]"]] = []
    """All registries, so that a part's registry can be found from the part."""

    def __init__(self, group: str, builtin: Mapping[str, str], base: type[C]) -> None:
        self.group, self.builtin, self.base = group, dict(builtin), base
        self.all.append(self)

    def names(self) -> list[str]:
        """List every kind, those of other packages included."""
        return list(dict.fromkeys([*self.builtin, *installed(self.group)]))

    def find(self, kind: str) -> type[C]:
        """Import the config class of a kind, or of a place, `package.module:Config`.

        Raises:
            ConfigError: If no part has this kind, its package cannot be imported, or what is there
                is not a config of this sort.
            MachineError: If own parts are off and this one is not loaded.
        """
        with naming_import(self.group, kind):
            if ":" in kind or kind in self.builtin:
                found = import_named(self.builtin.get(kind, kind))
            else:
                point = installed(self.group).get(kind)
                found = None if point is None else point.load()
        if found is None:
            hint = suggestion(kind, self.names())
            known = ", ".join(self.names())
            raise ConfigError(
                f"{self.group}: no kind {kind[:60]!r}{hint} (known: {known}, or package.module:"
                "Config)"
            )
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise ConfigError(
                f"{self.group}: {kind!r} must be a subclass of {self.base.__name__}, "
                f"got {reprlib.repr(found)}"
            )
        if missing := ", ".join(sorted(getattr(found, "__abstractmethods__", ()))):
            raise ConfigError(f"{self.group}: {kind!r} must define {missing}")
        return _named(found, kind)

    def validate(self, value: Any) -> C:
        """Return the config of a kind, a table or a config.

        Raises:
            ConfigError: If there is none, or files could not name its class again.
        """
        if isinstance(value, self.base):
            self._check_place(value)
            return value
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
            raise ConfigError(f"expected a kind: one of {', '.join(self.names())}")
        return self.find(value["kind"]).load(value)

    def _check_place(self, value: Any) -> None:
        """Refuse a config whose run nobody could read: its kind leads elsewhere, or nowhere."""
        given: type = type(value)
        found: type = object
        with suppress(ConfigError):
            # Another process has another `__main__`.
            found = object if value.kind.startswith("__main__:") else self.find(value.kind)
        if (found.__module__, found.__qualname__) != (given.__module__, given.__qualname__):
            raise ConfigError(
                f"{self.group}: nobody could find {given.__qualname__} again by its kind "
                f"{value.kind!r}: put the class in a file of its own, without a line for `kind`"
            )


class Part(Config):
    """A part's config, whose `build` makes the live object.

    Attributes:
        kind: Its short name; a class that gives itself none is named by its place,
            `package.module:Config`.
        references: Keys of what is to be cited for it, in `pernn/lab/references.bib`.
    """

    references: ClassVar[tuple[str, ...]] = ()
    kind: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = get_annotations(cls)
        if "kind" not in own:
            cls.__annotations__ = {**own, "kind": str}
            cls.kind = f"{cls.__module__}:{cls.__qualname__}"


@cache
def _named(found: type[C], kind: str) -> type[C]:
    """Return a class whose kind is the place that it was named by, so that files keep it."""
    if ":" not in kind or found.model_fields["kind"].default == kind:
        return found
    module, _, name = kind.partition(":")
    # A subclass names itself by its place.
    place = {"__module__": module, "__qualname__": name}
    metaclass: Any = type(found)
    return cast("type[C]", metaclass(found.__name__, (found,), place))


def suggestion(word: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """Return a "did you mean" if a known word is close.

    Words with these initials are, too. Last words of dotted paths elsewhere are tried as well:
    first of all if one is the word.
    """
    from rapidfuzz import fuzz, process

    here = {name: name for name in known}
    there = {path.rpartition(".")[2]: path for path in elsewhere}
    for names in ({word: there[word]} if word in there else {}, here, there):
        initials = {"".join(part[:1] for part in name.split("_")): name for name in names}
        close = process.extractOne(word[:60], names.keys(), scorer=fuzz.ratio, score_cutoff=60)
        found = initials.get(word) or (close and close[0])
        if found:
            return f", did you mean {names[found]!r}?"
    return ""


@dataclass(frozen=True)
class Problem:
    """One complaint of a validation, with known keys if one is unknown."""

    path: str
    message: str
    known: tuple[str, ...] = ()

    def told(self, elsewhere: Sequence[str]) -> str:
        """Return it as text, with the nearest known key."""
        message = self.message
        if self.known:
            hint = suggestion(self.path.rpartition(".")[2], self.known, elsewhere)
            message += f"{hint} (known: {', '.join(self.known)})"
        return f"{self.path}: {message}" if self.path else message


class InvalidConfigError(ConfigError):
    """Return a validation's complaints on one line, with their paths."""

    def __init__(self, owner: type[BaseModel], error: ValidationError) -> None:
        self.problems = list(islice(_problems(owner, error), MAX_PROBLEMS))
        self.num_problems = error.error_count()
        super().__init__(self.told())

    def told(self, paths: Iterable[str] = ()) -> str:
        """Return the complaints on one line.

        A key that was meant may be one of the paths.
        """
        wrong = {one.path for one in self.problems}
        elsewhere = [path for path in paths if path not in wrong]
        lines = [one.told(elsewhere) for one in self.problems]
        if len(lines) == MAX_PROBLEMS < self.num_problems:
            lines.append(f"{self.num_problems:,} complaints in all")
        return "; ".join(lines)


def _problems(owner: type[BaseModel], error: ValidationError) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        path = ".".join(str(part) for part in item["loc"])
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, InvalidConfigError):
            # A part was refused: its own complaints, under the part's path.
            for inner in cause.problems:
                yield replace(inner, path=".".join(filter(None, [path, inner.path])))
        elif item["type"] == "extra_forbidden":
            yield Problem(path, "unknown key", tuple(_owner_of(owner, item["loc"]).model_fields))
        elif item["type"] == "value_error":
            yield Problem(path, str(cause))
        else:
            yield Problem(path, f"{item['msg']}, got {reprlib.repr(item['input'])}")


def _owner_of(owner: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the config that holds the last key of a place, a part of a config like `training`."""
    for key in place[:-1]:
        field = owner.model_fields.get(str(key))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        found = (one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel))
        owner = next(found, owner)
    return owner


def read_file(path: Path) -> dict[str, Any]:
    """Read a TOML or JSON file of parameters."""
    form = "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = _read_text(path)
        values = json.loads(text) if form == "JSON" else _parse_toml(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid {form}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a table of keys and values")
    return values


def _read_text(path: Path) -> str:
    found = path.stat()
    # A pipe could be waited for in vain, a device read for ever.
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not an ordinary file")
    if found.st_size > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES:,} bytes")
    return path.read_text(encoding="utf-8")


def _parse_toml(text: str) -> dict[str, Any]:
    if max(line.count(".") for line in text.split("\n")) > MAX_DOTS:
        raise ValueError(f"more than {MAX_DOTS} dots on a line")
    return tomllib.loads(text)


def parse_assignment(text: str, option: str = "--set") -> tuple[str, Any]:
    """Read one `path=value`, whose value is JSON, a list or a word."""
    path, separator, word = text.partition("=")
    if not separator or not path:
        raise ConfigError(f"{option} {text}: expected path=value, for example core.hidden_size=256")
    return path, _parse_value(word)


def _parse_value(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        if word.startswith("[") and word.endswith("]"):
            # Words in a list need no quotes: core.kind=[gru,lstm].
            return [_parse_value(one.strip()) for one in word[1:-1].split(",")]
        return word


def leaves(
    values: Mapping[str, Any], keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what is not nested any further, with its keys."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*keys, key))
        else:
            yield (*keys, key), value


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values by dotted path.

    Examples:
        >>> flatten({"core": {"kind": "lstm"}, "seed": 1})
        {'core.kind': 'lstm', 'seed': 1}
    """
    # Names that thousands of trials share are in memory once.
    return {
        intern(".".join(keys)): json.dumps(value) if isinstance(value, list) else value
        for keys, value in leaves(values)
        if not isinstance(value, Mapping)
    }


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, in the order of their appearance."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def nested(items: Iterable[tuple[K, Any, V]]) -> dict[K, dict[Any, V]]:
    """Return outer key → inner key → value."""
    return {key: dict(some) for key, some in grouped((k, (i, v)) for k, i, v in items).items()}


VARIABLE = "PERNN_PARTS"
"""Modules of one's own parts, with commas between, that may be imported while data are read."""

_importing = ContextVar("importing", default=True)


@contextmanager
def own_parts_off() -> Iterator[None]:
    """Import no module that a kind names until the block ends.

    This package, what is imported already, or named in `PERNN_PARTS`, counts. Also a decorator.
    """
    before = _importing.set(False)
    try:
        yield
    finally:
        _importing.reset(before)


def installed(group: str) -> dict[str, EntryPoint]:
    """Return what installed packages registered.

    It counts only if `PYTHONPATH` names it: `python -m` and scripts put it there by themselves.
    """
    counts = any(map(_is_current, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    folders = [folder for folder in sys.path if folder and (counts or not _is_current(folder))]
    points = (point for found in distributions(path=folders) for point in found.entry_points)
    return dict(reversed([(point.name, point) for point in points if point.group == group]))


def _is_current(folder: str) -> bool:
    with suppress(OSError):
        return folder != "" and Path(folder).samefile(os.curdir)
    return False


@contextmanager
def naming_import(group: str, name: str) -> Iterator[None]:
    """Name a part that cannot be imported, whatever it raises."""
    try:
        yield
    except MachineError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{group}: {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def import_named(place: str) -> Any:
    """Import the `package.module:name` of data, or find it if parts are off."""
    module, _, name = place.partition(":")
    is_ours = module.partition(".")[0] == __name__.partition(".")[0]
    own = [*filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(",")))]
    if _importing.get() or is_ours or module in own:
        return attrgetter(name)(import_module(module))
    # A module's own `__getattr__` could import more.
    keys, loaded = name.split("."), sys.modules.get(module)
    found = reduce(lambda one, key: getattr_static(one, key, None), keys, loaded)
    if found is None:
        raise MachineError(
            f"made with a part that is not loaded, {place[:80]!r}: what only reads imports no code "
            f"that data name; if it is yours, set {VARIABLE}={','.join([*own, module[:60]])}"
        )
    return found
