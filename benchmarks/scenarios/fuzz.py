"""Mutated and made-up input for every loader: nothing but errors of pernn comes out.

What loads must dump and load back equal; a message is one line. Inputs are seeded.
"""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pernn.errors import PernnError
from pernn.lab.config import flatten, parse_assignment
from pernn.lab.experiments import experiment_names, find_experiment, trials
from pernn.lab.runners import TrialEvent
from pernn.lab.runs import RunSpec
from pernn.lab.store import Checkpoint, RunDirectory, Sweep, load_sweep, read_status, save_sweep
from pernn.lab.tasks import TASKS
from pernn.lab.trials import read_trial

from .commands import Counts, require, to_toml

EXTREMES = [
    b"NaN", b"Infinity", b"-inf", b"1e308", b"1e999", b"-1", b"0", b"0.5", b"true", b"null", b"[]",
    b"{}", b'""', b'"kind"', b"9223372036854775808", b"1" + b"0" * 400, b"1" * 5000, b"[" * 2000,
    b'{"a":' * 2000, b"\xff", b"\0", b"\xe2\x80\xae", b"\x1b[31m", b'"\\ud800"', b"\n", b"=", b".",
    b"1", b"2", b"8", b"64", b"0.001", b'"gru"', b'"none"', b"1979-05-27", b'"<script>"',
    b"0x" + b"f" * 400,
]  # fmt: skip
"""What replaces or joins a piece of a file."""

PIECE = re.compile(rb'"[^"\n]*"|[-+.\w]+|[\[\]{}:,=]')
SPECS = [
    *(RunSpec().override({"task": {"kind": kind}}) for kind in TASKS.names()),
    RunSpec().override({"core.kind": "s4d", "encoding.kind": "learned", "seed": 7}),
    RunSpec().override({"analysis": {}, "training.keep_interval": 100_000}),
]

Check = Callable[[random.Random], bool]
"""Loads one input and raises nothing but errors of pernn; whether it loaded."""


def loads(check: Callable[[], object]) -> bool:
    """Return whether nothing says no: neither the check nor an error of pernn, of one line."""
    try:
        return check() is not False
    except PernnError as error:
        require("\n" not in str(error), repr(str(error)))
        return False


def mutate(content: bytes, chance: random.Random) -> bytes:
    """Change a file in one to three places: bits, pieces, lines."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        size = len(content)
        start = chance.randrange(size + 1)
        end = min(size, start + chance.choice([1, 2, 8, 64]))
        match chance.randrange(6):
            case 0 if size:
                flipped = bytearray(content)
                flipped[chance.randrange(size)] ^= 1 << chance.randrange(8)
                content = bytes(flipped)
            case 1:
                content = content[:start] + content[end:]
            case 2:
                content = content[:start] + chance.choice(EXTREMES) + content[start:]
            case 3:
                content = content[:end] + content[start:]
            case 4:
                content = content[:start]
            case _:
                pieces = list(PIECE.finditer(content))
                if pieces:
                    one = chance.choice(pieces)
                    other = chance.choice([*EXTREMES, chance.choice(pieces)[0]])
                    content = content[: one.start()] + other + content[one.end() :]
    return content


def loads_back(spec: RunSpec) -> bool:
    """Hold a spec to the promise that what loads dumps and loads back equal."""
    again = RunSpec.load(json.loads(json.dumps(spec.dump())))
    require(again == spec and again.fingerprint() == spec.fingerprint(), spec)
    require(spec.num_updates > 0 and "\n" not in spec.label, spec)
    return True


class Loaders:
    """All loaders, with the files in a directory that are mutated for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.spec = SPECS[0]
        self.run = RunDirectory(directory, self.spec.fingerprint())
        with self.run.locked():
            self.run.write_spec(self.spec.dump())
            self.run.write_environment({"threads": 1, "device": "cpu"})
            for update in range(3):
                self.run.append_metrics({"update": update, "kind": "test", "loss": 0.5})
                self.run.note("resumed", update=update, changed={"threads": [1, 2]})
            arrays = {"model.w": np.arange(6.0).reshape(2, 3), "sums": np.zeros(3)}
            self.checkpoint = Checkpoint(7, arrays, self.run.metrics_so_far())
            self.run.checkpoints.save(self.checkpoint)
            tables = {"by_update": {"update": [1, 2], "loss": [0.5, 0.25]}}
            result = {"fingerprint": self.run.fingerprint, "metrics": {"loss": 0.5}}
            self.run.write_result({**result, "num_parameters": 3, "tables": tables})
        save_sweep(directory, Sweep("a-demo", "a", "demo", {"seed": 1}, [self.run.fingerprint]))
        folder = self.run.path / "checkpoints" / "update-000000007"
        names = "spec.json", "result.json", "environment.json", "metrics.jsonl", "journal.jsonl"
        self.files = {(path := self.run.path / name): path.read_bytes() for name in names}
        self.parts = {path: path.read_bytes() for path in sorted(folder.iterdir())}
        self.manifest = directory / "sweeps" / "a-demo" / "sweep.json"
        self.listed = self.manifest.read_bytes()

    def shares(self) -> dict[str, tuple[Check, float]]:
        """Name the loaders with their shares of the inputs."""
        return {
            "spec_toml": (self.toml, 0.2), "spec_json": (self.json, 0.2),
            "override": (self.override, 0.15), "grid": (self.grid, 0.01),
            "checkpoint": (self.folder, 0.14), "run_directory": (self.readers, 0.12),
            "sweep": (self.sweep, 0.08), "event": (self.event, 0.1),
        }  # fmt: skip

    def _read_spec(self, name: str, content: bytes, chance: random.Random) -> bool:
        path = self.directory / name
        path.write_bytes(mutate(content, chance))
        return loads_back(RunSpec.read(path))

    def toml(self, chance: random.Random) -> bool:
        """Read a mutated TOML file."""
        content = to_toml(flatten(chance.choice(SPECS).dump())).encode()
        return self._read_spec("a.toml", content, chance)

    def json(self, chance: random.Random) -> bool:
        """Read a mutated JSON file, a run's own among them."""
        own = self.files[self.run.path / "spec.json"]
        some = json.dumps(chance.choice(SPECS).dump()).encode()
        return self._read_spec("a.json", chance.choice([own, some]), chance)

    def _assignment(self, spec: RunSpec, chance: random.Random) -> str:
        path, value = chance.choice(list(flatten(spec.dump()).items()))
        extremes = [one.decode(errors="replace") for one in EXTREMES]
        text = f"{path}={chance.choice([json.dumps(value), 'gru', 'none', 's4d', '64', *extremes])}"
        if chance.random() < 0.7:
            return text
        return mutate(text.encode(), chance).decode(errors="replace")

    def override(self, chance: random.Random) -> bool:
        """Parse assignments and override a spec with them."""
        spec, number = chance.choice(SPECS), chance.choice([1, 1, 2])
        texts = [self._assignment(spec, chance) for _ in range(number)]
        return loads_back(spec.override(dict(parse_assignment(text) for text in texts)))

    def grid(self, chance: random.Random) -> bool:
        """Override a value in every trial of an experiment."""
        path, value = parse_assignment(self._assignment(SPECS[0], chance))
        found = trials(find_experiment(chance.choice(experiment_names())), "demo", {path: value})
        return all(loads_back(spec) for spec in found[:2])

    def folder(self, chance: random.Random) -> bool:
        """Load a checkpoint of which a part was mutated."""
        path = chance.choice(list(self.parts))
        path.write_bytes(mutate(self.parts[path], chance))
        try:
            if chance.random() < 0.1:
                found, said = self.run.checkpoints.load_latest()
                require((found is None) == bool(said), said)
                if found is None:
                    path.parent.with_name(f"damaged-{path.parent.name}").rename(path.parent)
                    return False
            else:
                found = self.run.checkpoints.load(7)
        finally:
            path.write_bytes(self.parts[path])
        for name, array in self.checkpoint.arrays.items():
            require(np.array_equal(found.arrays[name], array), name)
        require(found.state == self.checkpoint.state, found.state)
        return True

    def readers(self, chance: random.Random) -> bool:
        """Read a run directory of which a file was mutated."""
        path, run = chance.choice(list(self.files)), self.run
        path.write_bytes(mutate(self.files[path], chance))
        try:
            return all([*map(loads, (
                run.read_spec, run.read_result, run.read_environment, run.read_metrics,
                run.read_journal, lambda: read_trial(self.directory, run.fingerprint),
                lambda: read_status(self.directory, run.fingerprint),
                lambda: run.restore_metrics(self.checkpoint.state),
            ))])  # fmt: skip
        finally:
            for place, content in self.files.items():
                place.write_bytes(content)

    def sweep(self, chance: random.Random) -> bool:
        """Read a mutated list of runs."""
        self.manifest.write_bytes(mutate(self.listed, chance))
        found = load_sweep(self.directory, "a-demo")
        save_sweep(self.directory, found)
        require(load_sweep(self.directory, "a-demo") == found, found)
        return True

    def event(self, chance: random.Random) -> bool:
        """Parse a mutated line of a worker."""
        event = TrialEvent("failed", self.run.fingerprint, 3, "no \u2028 space", "StoreError")
        line = mutate(json.dumps(asdict(event)).encode(), chance).decode(errors="replace")
        found = TrialEvent.parse(line)
        if found is not None:
            require(TrialEvent.parse(json.dumps(asdict(found))) == found, line)
        return found is not None


WORDS = st.sampled_from(["kind", "task", "core", "gru", "seed", "vocab_size", "training"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS | st.text(), inner),
    max_leaves=8,
)
"""JSON values of any shape, and what only Python has."""


def made_up(num_inputs: int) -> Counter[str]:
    """Give the loader hypothesis' values for a random path of a spec."""
    paths = sorted({path for spec in SPECS for path in flatten(spec.dump())})
    parents = sorted({path.rpartition(".")[0] for path in paths} - {""})
    count: Counter[str] = Counter()

    @settings(
        max_examples=num_inputs, database=None, deadline=None, derandomize=True,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(SPECS), st.sampled_from([*paths, *parents]) | st.text(), VALUES)
    def check(spec: RunSpec, path: str, value: Any) -> None:
        count["inputs"] += 1
        count["loaded"] += loads(lambda: loads_back(spec.override({path: value})))

    check()
    return count


def fuzz(
    directory: Path, *, num_inputs: int = 100_000, seconds: float = 1800.0, seed: int = 1
) -> Counts:
    """Feed every loader; counts of inputs, and of those that loaded, per loader."""
    begun, slowest, found = time.monotonic(), 0.0, dict[str, int]()
    for name, (check, share) in Loaders(directory).shares().items():
        chance = random.Random(f"{seed} {name}")
        found |= {name: int(num_inputs * share) + 1, f"{name}_loaded": 0}
        for number in range(found[name]):
            moment = time.monotonic()
            require(moment - begun < seconds, f"{name}: more than {seconds} s")
            try:
                found[f"{name}_loaded"] += loads(partial(check, chance))
            except Exception as error:
                raise AssertionError(f"{name}, input {number + 1}: {error!r}") from error
            slowest = max(slowest, time.monotonic() - moment)
    count = made_up(max(1, num_inputs // 20))
    found |= {"made_up": count["inputs"], "made_up_loaded": count["loaded"]}
    total = sum(int(n) for name, n in found.items() if not name.endswith("_loaded"))
    return {**found, "num_inputs": total, "slowest_seconds": round(slowest, 3)}
