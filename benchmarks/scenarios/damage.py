"""Files that were cut, flipped, edited, removed or could not be written.

Each scenario damages copies of a tiny sweep, runs the real commands, and holds every run to one of
two ends: the bits of the undisturbed run, or a refusal in one line that names the file. After a
refusal the run directory is deleted, as the line says, and the sweep must end in the same bits.
"""

import json
import random
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from .commands import (
    SETTINGS,
    Counts,
    all_contents,
    change,
    complaints,
    contents,
    copy,
    end_alike,
    pernn,
    require,
    resume,
    run_sweep,
    undisturbed,
    unfinish,
)

Damage = Callable[[Path], object]
NEWEST, BEFORE = "checkpoints/update-000000015", "checkpoints/update-000000010"
PARTS = ("tensors.safetensors", "state.json", "manifest.json")
KINDS = ("spec.json", "environment.json", "journal.jsonl", "metrics.jsonl", "lock", "checkpoints")
LINES = ("metrics.jsonl", "journal.jsonl")


def header_end(content: bytes) -> int:
    """Return where the header of a safetensors file ends."""
    return 8 + int.from_bytes(content[:8], "little")


Places = dict[str, Callable[[bytes], int]]
"""Where a file is cut."""
OF_A_PART: Places = {
    "empty": lambda c: 0, "first byte": lambda c: 1, "half": lambda c: len(c) // 2,
    "all but two": lambda c: len(c) - 2, "last byte": lambda c: len(c) - 1,
}  # fmt: skip
OF_TENSORS: Places = {
    "in header length": lambda c: 7, "after header length": lambda c: 8,
    "in header": lambda c: header_end(c) // 2, "before header end": lambda c: header_end(c) - 1,
    "header end": header_end, "in tensors": lambda c: (header_end(c) + len(c)) // 2 + 1,
}  # fmt: skip
OF_LINES: Places = {
    "last line": lambda c: len(c) - 5, "middle": lambda c: len(c) // 2,
    "first line": lambda c: 9, "empty": lambda c: 0,
}  # fmt: skip


def rewrite(name: str, how: Callable[[bytes], bytes]) -> Damage:
    """Put something that depends on its content in the place of a file."""
    return lambda run: (run / name).write_bytes(how((run / name).read_bytes()))


def cut(name: str, place: Callable[[bytes], int]) -> Damage:
    """Cut a file at a place that depends on its content."""
    return rewrite(name, lambda content: content[: max(0, place(content))])


def flip(name: str, bit: int) -> Damage:
    """Flip one bit of a file, counted modulo its length."""

    def flipped(content: bytes) -> bytes:
        changed = bytearray(content)
        if changed:
            changed[bit // 8 % len(changed)] ^= 1 << (bit % 8)
        return bytes(changed)

    return rewrite(name, flipped)


def remove(name: str) -> Damage:
    """Remove a file or folder."""
    return lambda run: shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()


def edit(name: str, before: str, after: str) -> Damage:
    """Replace a text."""

    def edited(content: bytes) -> bytes:
        require(before.encode() in content, f"{name} has no {before}")
        return content.replace(before.encode(), after.encode())

    return rewrite(name, edited)


def every_damage(num_flips: int) -> Iterator[tuple[str, Damage]]:
    """Cut, remove, edit, claim a newer format, flip bits: one file of a run each."""
    cuts = [(f"{NEWEST}/{part}", OF_A_PART) for part in PARTS]
    cuts += [(f"{NEWEST}/{PARTS[0]}", OF_TENSORS), *((name, OF_LINES) for name in LINES)]
    for name, places in cuts:
        for where, place in places.items():
            yield f"{name} cut: {where}", cut(name, place)
    for name in LINES:
        yield f"{name} torn in the middle", edit(name, '}\n{"', '}\n{"upd\n{"')
    for name in (*KINDS, NEWEST, *(f"{NEWEST}/{part}" for part in PARTS), "."):
        yield f"{name} missing", remove(name)
    yield "spec edited: batch", edit("spec.json", '"batch_size": 4', '"batch_size": 5')
    yield "spec edited: form", edit("spec.json", '"format": 1', '"format":   1')
    yield "newer spec", edit("spec.json", '"format": 1', '"format": 2')
    yield "threads edited", edit("environment.json", '"threads": 1', '"threads": 2')
    other = "checkpoints/update-000000019"
    yield "checkpoint of another update", lambda run: (run / BEFORE).rename(run / other)
    chance = random.Random(1)
    names = [name for name in KINDS[:-1] if name != "lock"]
    names += [f"{folder}/{part}" for folder in (NEWEST, BEFORE) for part in PARTS]
    for number in range(num_flips):  # each file as often as any other
        name = names[number % len(names)]
        bit = chance.randrange(2**32)
        yield f"{name} flipped at {bit}", flip(name, bit)


def damaged_files(directory: Path, *, num_flips: int = 300, most: int | None = None) -> Counts:
    """Damage files of unfinished runs, one each, and resume; `most` takes a sample of all cases."""
    source, sweep = undisturbed(directory)
    expected = all_contents(source)
    cases = [*every_damage(num_flips)]
    if most is not None:
        cases = random.Random(3).sample(cases, most)
    count, work = Counter[str](), directory / "damaged"
    for start in range(0, len(cases), len(expected)):
        chosen = [*zip(unfinish(source, work), cases[start:], strict=False)]
        for run, (_, damage) in chosen:
            damage(run)
        pernn("status", "-r", work, "--json")
        done = resume(work)
        pernn("status", sweep, "-r", work)
        require((done.returncode == 0) == (not complaints(done)), done.stderr)
        for run, (name, _) in chosen:
            mine = [line for line in complaints(done) if run.name in line]
            if (run / "result.json").exists():
                require(contents(run) == expected[run.name], f"{name}: other bits")
                require(not mine, f"{name}: finished, and yet {mine}")
                count["same_bits"] += 1
            else:
                require(len(mine) == 1, f"{name}: neither a result nor one line: {done.stderr}")
                shutil.rmtree(run)
                count["refused"] += 1
        end_alike(work, expected, "after deleting what was refused")
    require(count.total() == len(cases), count)
    return {"num_cases": len(cases), **count}


def damaged_results(directory: Path, *, num_flips: int = 40) -> Counts:
    """Flip bits of results, specs and lists of runs that are finished, and read them."""
    source, sweep = undisturbed(directory)
    whole = directory / "whole.json"
    pernn("export", sweep, "-r", source, "-o", whole)
    rows = json.loads(whole.read_text())
    chance, count = random.Random(2), Counter[str]()
    lists = [f"sweeps/{sweep}/sweep.json"]
    runs = sorted(run.name for run in (source / "runs").iterdir())
    names = [f"runs/{run}/{name}" for run in runs for name in ("result.json", "spec.json")]
    for number in range(num_flips):
        work = copy(source, directory / "damaged")
        name = (names + lists)[-1 if number % 5 == 0 else chance.randrange(len(names))]
        flip(name, chance.randrange(2**32))(work)
        made = directory / "made.json"
        made.unlink(missing_ok=True)
        done = pernn("export", sweep, "-r", work, "-o", made)
        if done.returncode == 0:
            require(made.read_bytes() == whole.read_bytes(), f"{name}: other records, no word")
            count["same_records"] += 1
        else:
            require(done.returncode == 4 and len(complaints(done)) == 1, done.stderr)
            others = [row for row in rows if row["run"] not in name]
            kept = not made.exists() if name in lists else json.loads(made.read_text()) == others
            require(kept, f"{name}: other records of others")
            count["refused"] += 1
        pernn("status", "-r", work, "--json")
    return {"num_cases": num_flips, **count}


def full_disk(directory: Path, *, num_sizes: int = 12) -> Counts:
    """Let the disk be full at different moments, then give it space and resume."""
    source, sweep = undisturbed(directory)
    expected = all_contents(source)
    count: Counter[str] = Counter()
    with Disk(directory / "small") as disk:
        root, means = disk.root, "tmpfs" if disk.is_mounted else "RLIMIT_FSIZE"
        for number in range(num_sizes):
            shutil.rmtree(root, ignore_errors=True)
            (root / "sweeps" / sweep).mkdir(parents=True)
            shutil.copy(source / "sweeps" / sweep / "sweep.json", root / "sweeps" / sweep)
            limit = disk.resize(number / num_sizes)
            # Knowing beforehand that it will be full, pernn would not begin.
            done = pernn("resume", "-r", root, "-j", 2, "--force", preexec_fn=limit)
            require(done.returncode in (1, 4), f"a full disk, and yet {done.returncode}")
            lines = complaints(done)
            require(lines and all("run the same command again" in line for line in lines), lines)
            count["refused"] += 1
            for result in root.glob("runs/*/result.json"):
                count["finished_before"] += 1
                same = result.read_bytes() == expected[result.parent.name]["result.json"]
                require(same, f"{result}: other bits")
            disk.resize(None)
            end_alike(root, expected, "with space again")
            count["same_bits"] += 1
    return {"num_cases": num_sizes, "means": means, **count}


class Disk:
    """A folder that is memory of its own; without the rights to mount it, limits take its place."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = place, place / "results"
        place.mkdir()
        self.is_mounted = not self._mount("-t", "tmpfs", "-o", "size=64m", "tmpfs").returncode

    def _mount(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        command = ["mount", *words, str(self.place)]
        return subprocess.run(command, capture_output=True, check=False)

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_mounted:
            subprocess.run(["umount", str(self.place)], check=True)

    def resize(self, share: float | None) -> Callable[[], None] | None:
        """Leave a share of 0 to 1, or plenty; gives what a process has to do before it starts."""
        if self.is_mounted:
            # All 15 runs take some 1.7 MB there, the report half a megabyte.
            size = 65_536 if share is None else int(64 + share * 2000)
            self._mount("-o", f"remount,size={size}k").check_returncode()
        if self.is_mounted or share is None:
            return None
        # A checkpoint's tensors are the longest file, some 12 kB.
        length = int(200 + share * 10_000)
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (length, length))

    def seal(self, how: str) -> None:
        """Make it read-only (`ro`), by its mount or its permissions, or writable (`rw`)."""
        if self.is_mounted:
            self._mount("-o", f"remount,{how}").check_returncode()
            return
        for path in self.root.rglob("*"):
            own = 0o755 if path.is_dir() else 0o644
            path.chmod(own & 0o555 if how == "ro" else own)


def read_only(directory: Path) -> Counts:
    """Make the results directory read-only: readers work, writers say so, and nothing is lost."""
    source, sweep = undisturbed(directory)
    with Disk(directory / "sealed") as disk:
        root, means = disk.root, "tmpfs mounted read-only" if disk.is_mounted else "permissions"
        runs = unfinish(source, root)
        shutil.copytree(source / "runs" / runs[0].name, runs[0], dirs_exist_ok=True)
        disk.seal("ro")
        before = sorted(path.stat().st_mtime_ns for path in root.rglob("*"))
        outcomes = {
            ("status", "--json"): 0,
            ("status", sweep): 0,
            ("export", sweep, "-o", str(directory / "out.csv")): 0,
            ("resume",): 4,
            ("report", sweep): 4,
            ("train", str(runs[1] / "spec.json")): 4,
        }
        for words, status in outcomes.items():
            done = pernn(*words, "-r", root)
            require(done.returncode == status, (words, done.returncode, done.stderr))
            require((len(complaints(done)) > 0) == (status != 0), done.stderr)
        require(before == sorted(p.stat().st_mtime_ns for p in root.rglob("*")), "was written")
        disk.seal("rw")
        end_alike(root, all_contents(source), "when it can be written again")
    return {"num_cases": len(outcomes), "means": means, "same_bits": len(runs)}


def foreign_versions(directory: Path) -> Counts:
    """Claim a newer format in each kind of file that has a number, and read."""
    source, sweep = undisturbed(directory)
    run = min((source / "runs").iterdir()).name
    names = [f"sweeps/{sweep}/sweep.json", f"runs/{run}/spec.json", f"runs/{run}/result.json"]
    commands = [("status",), ("report",), ("resume",), ("report", "--claims")]
    for name in names:
        work = copy(source, directory / "newer")
        change(work / name, format=2)
        for words in commands:
            done = pernn(*words, sweep, "-r", work)
            said = done.stdout + done.stderr
            # What is done is not read again, neither to be counted nor to be left as it is.
            unread = {"spec.json": ("status", "resume"), "result.json": ("resume",)}
            unread_here = words[0] in unread.get(Path(name).name, ())
            require(unread_here or "newer pernn" in " ".join(said.split()), (name, words, said))
    return {"num_cases": len(names) * len(commands)}


CONFOUNDED: tuple[dict[str, object], ...] = (
    {"encoding.base": 100.0},
    {"encoding.frequencies": [0.8, 0.4, 0.2, 0.1]},
    {"training.micro_batch": 2},
)
"""Settings that a spec leaves out where they are not given."""


def confounded(directory: Path) -> Counts:
    """Give a setting to one core's trials alone: no comparison of the cores mixes it in."""
    two = {**SETTINGS, "seed": [111, 222], "task.vocab_size": 32}
    source = directory / "one side"
    run_sweep(source, {**two, "core.kind": "lstm"})
    for number, extra in enumerate(({}, *CONFOUNDED)):
        root = Path(shutil.copytree(source, directory / f"confounded-{number}"))
        run_sweep(root, {**two, **extra, "core.kind": "gru"})
        done = pernn("compare", "core.kind=gru", "core.kind=lstm", "-r", root)
        require(done.returncode == (2 if extra else 0), f"{extra}: {done.stdout}{done.stderr}")
        require(all(name in done.stderr for name in extra), f"{extra}: {done.stderr}")
    return {"num_cases": len(CONFOUNDED)}
