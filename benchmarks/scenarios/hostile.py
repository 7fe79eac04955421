"""Files and names made to do harm: refused in one line, nothing run, nothing written outside.

Everything lies in a folder of which a snapshot is taken before and after: only the results
directory in it may differ.
"""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
from itertools import product
from pathlib import Path

from .commands import (
    LAST,
    SETTINGS,
    Counts,
    change,
    complaints,
    copy,
    pernn,
    require,
    run_sweep,
    setting,
    to_toml,
    undisturbed,
)

ESCAPES = "\x1b[31mred\x1b[0m\n\u202eback\u200b\x07"
MARKUP = "<script>alert(1)</script>[/bold][red]"
NETWORK = {"task.kind": "reverse_ordering", "task.vocab_size": 4, "core.kind": "lstm"}
TRIAL = to_toml(SETTINGS | NETWORK)
SPECS = {
    "deep table.toml": "a = " + "[" * 100_000, "deep inline.toml": "a = " + "{a=" * 100_000,
    "dotted key.toml": "a." * 100_000 + "a = 1", "deep.json": '{"a":' * 150_000,
    "dotted header.toml": "[" + "a." * 100_000 + "a]", "many tables.toml": "[[a]]\n" * 150_000,
    "many keys.toml": "".join(f"a{number} = 1\n" for number in range(80_000)),
    "long key.toml": "a" * 900_000 + " = 1", "huge file.toml": "#" * 1_000_001,
    "long kind.toml": f'[task]\nkind = "{"a" * 900_000}"', "binary.toml": "\0\1\2",
    "huge integer.toml": "seed = " + "9" * 900_000, "large integer.toml": f"seed = {10**400}",
    "huge hexadecimal.toml": "seed = 0x" + "f" * 900_000, "date.toml": "seed = 1979-05-27",
    "escapes.toml": f"{json.dumps(ESCAPES)} = 1", "markup.toml": f"{json.dumps(MARKUP)} = 1",
    "escaped kind.toml": f"[core]\nkind = {json.dumps(ESCAPES)}",
    "nan.toml": f"{TRIAL}training.learning_rate = nan",
    "infinity.toml": f"{TRIAL}training.learning_rate = inf",
    "overflow.toml": f"{TRIAL}training.learning_rate = 1e999",
    "1e308.toml": f"{TRIAL}training.learning_rate = 1e308",
}  # fmt: skip
SIZES = [
    {"task.vocab_size": 2**31}, {"task.vocab_size": 2**63}, {"task.vocab_size": 10**400},
    {"task.length": 2**16, "training.batch_size": 10**6},
    {"task.num_held_out": 2**24, "task.length": 2**16, "task.vocab_size": 2**31},
    {"core.hidden_size": 2**20}, {"core.hidden_size": 2**63}, {"encoding.size": 2**62},
    {"embedding_size": 2**20, "task.vocab_size": 2**31}, {"core.num_layers": 2**40},
    {"training.learning_rate": "NaN"}, {"training.learning_rate": "1e400"},
    {"training.iterations": 1e308}, {"seed": -1},
]  # fmt: skip
MEMORY = 2**33
"""Bytes of address space that a command may take, so that an allocation of more is noticed."""


def snapshot(folder: Path, *apart: Path) -> dict[str, str]:
    """Return the digest of every file below a folder but for some of its folders."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if any(path == own or own in path.parents for own in apart):
            continue
        kind = "link" if path.is_symlink() else "file" if path.is_file() else "other"
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if kind == "file" else ""
        found[str(path.relative_to(folder))] = f"{kind} {digest}"
    return found


def require_printable(said: str, what: str) -> None:
    """Hold what was said to lines without control characters."""
    printable = all(sign.isprintable() or sign == "\n" for sign in said)
    require(printable, f"{what}: control characters: {said[:300]!r}")


def refused(done: subprocess.CompletedProcess[str], what: str) -> None:
    """Hold a command to one printable line and an exit status that says what was wrong."""
    said = done.stderr + done.stdout
    require(done.returncode in (1, 2, 3, 4), f"{what}: status {done.returncode}: {said[:300]}")
    require_printable(said, what)
    require(len(complaints(done)) <= 1 and len(said) < 8_000, f"{what}: {said[:2000]}")


def hostile_specs(directory: Path) -> Counts:
    """Bombs, huge numbers, NaN and infinity, control characters in specs and overrides."""
    outside, root = directory / "outside", directory / "outside" / "results"
    root.mkdir(parents=True)
    (outside / "trial.toml").write_text(TRIAL)
    for name, content in SPECS.items():
        (outside / name).write_text(content)
    os.mkfifo(outside / "pipe.toml")
    before = snapshot(outside, root)
    for name in [*SPECS, "pipe.toml"]:
        refused(pernn("train", outside / name, "-r", root), name)
    refused(pernn("train", "/dev/zero", "-r", root), "/dev/zero")
    for sizes in SIZES:
        words = ("train", outside / "trial.toml", "-r", root, *setting(sizes))
        done = pernn(*words, under=("prlimit", f"--as={MEMORY}"))
        refused(done, str(sizes)[:80])
        require("Error:" not in done.stderr, f"{sizes}: {done.stderr}")
    require(not list(root.glob("runs/*/spec.json")), "a run was begun")
    require(snapshot(outside, root) == before, "something outside was written")
    return {"num_cases": len(SPECS) + 2 + len(SIZES)}


def hostile_names(directory: Path) -> Counts:
    """Traversal, markup and control characters where names, lists and reasons are read."""
    outside, root = directory / "outside", directory / "outside" / "results"
    sweep = run_sweep(root)
    manifest = root / "sweeps" / sweep / "sweep.json"
    whole = manifest.read_text()
    secret = outside / "secret"
    secret.mkdir()
    (secret / "sweep.json").write_text(whole)
    before, count = snapshot(outside, root), 0
    outward = ["..", "../secret", "../../secret", "a/b", "/etc", ".hidden"]
    names = [*outward, ESCAPES, MARKUP, "a" * 5000]
    for name, verb in product(names, ("status", "resume", "report", "pause", "prune", "export")):
        more = ["-o", outside / "x.csv"] if verb == "export" else []
        refused(pernn(verb, name, "-r", root, *more), f"{verb} {name[:20]!r}")
        count += 1
    lists = [
        {"runs": ["../../secret"]}, {"runs": [ESCAPES]}, {"runs": "x"}, {"name": "../../secret"},
        {"experiment": ESCAPES}, {"experiment": "../x"}, {"scale": MARKUP}, {"overrides": [1]},
        {"overrides": {ESCAPES: MARKUP}}, {"overrides": {"seed": ESCAPES}},
    ]  # fmt: skip
    for values in lists:
        change(manifest, **values)
        refused(pernn("resume", sweep, "-r", root), str(values))
        manifest.write_text(whole)
        count += 1
    for root_name in ("results[/bold]", "a" * 5000, "r\x1b[31m"):
        done = pernn("status", "-r", outside / root_name)
        require_printable(done.stdout + done.stderr, root_name)
        count += 1
    require(snapshot(outside, root) == before, "something outside was written")
    return {"num_cases": count, **_hostile_reasons(root, sweep)}


def _hostile_reasons(root: Path, sweep: str) -> Counts:
    """Put markup and escapes into a journal and a page's command; see what is shown."""
    run = min((root / "runs").iterdir())
    result = (run / "result.json").read_bytes()
    (run / "result.json").unlink()
    with (run / "journal.jsonl").open("a") as file:
        file.write(json.dumps({"event": "failed", "reason": ESCAPES + MARKUP}) + "\n")
    done = pernn("status", sweep, "-r", root)
    require(done.returncode == 0 and "alert(1)" in done.stdout, done.stderr)
    require_printable(done.stdout, "status")
    (run / "result.json").write_bytes(result)
    change(run / "environment.json", processor=ESCAPES + MARKUP)
    require(pernn("report", sweep, "-r", root).returncode == 0, "report")
    page = (root / "sweeps" / sweep / "index.html").read_text()
    require("<script>alert" not in page and "&lt;script&gt;alert" in page, "not escaped")
    require("\x1b" not in page and "\u202e" not in page, "control characters in the page")
    return {"num_shown": 2}


def pickles(directory: Path) -> Counts:
    """Put a pickle in the place of each file of a run, its checksum mended, and go on."""
    source, sweep = undisturbed(directory)
    mark = directory / "exploded"
    # As written by an object whose `__reduce__` returns (os.system, ("touch …",)).
    content = f"cos\nsystem\n(V touch {mark}\ntR.".encode()
    pickle.loads(content)  # noqa: S301 to see that it would explode
    require(mark.exists(), "the bomb is a dud")
    mark.unlink()
    names = ["spec.json", "environment.json", "metrics.jsonl", "journal.jsonl", "result.json"]
    parts = ["tensors.safetensors", "state.json", "manifest.json"]
    work = copy(source, directory / "work")
    runs = sorted((work / "runs").iterdir())
    for run, name in zip(runs, [*names, *parts], strict=False):
        if name != "result.json":
            (run / "result.json").unlink()
        for folder in [run] if name in names else sorted((run / "checkpoints").iterdir()):
            (folder / name).write_bytes(content)
            manifest = folder / "manifest.json"
            if name in parts[:2]:
                digests = json.loads(manifest.read_text())["sha256"]
                change(manifest, sha256={**digests, name: hashlib.sha256(content).hexdigest()})
    for words in (["status"], ["resume", "-j", 2], ["report", sweep]):
        pernn(*words, "-r", work)
    require(not mark.exists(), "a pickle was run")
    return {"num_cases": len(names) + len(parts)}


def links(directory: Path) -> Counts:
    """Put symbolic links that lead outside in the place of folders and files, and go on."""
    source, sweep = undisturbed(directory)
    outside = directory / "outside"
    root, target = outside / "results", outside / "target"
    run = f"runs/{min((source / 'runs').iterdir()).name}"
    inside = ("checkpoints", f"checkpoints/{LAST}", "metrics.jsonl", "journal.jsonl", "lock")
    places = ["runs", run, "sweeps", f"sweeps/{sweep}", "workers.log"]
    places += [f"{run}/{name}" for name in inside]
    for place in places:
        shutil.rmtree(outside, ignore_errors=True)
        shutil.copytree(source, root)
        (root / run / "result.json").unlink()
        if (root / place).exists():
            (root / place).rename(target)
        else:
            target.write_text("")
        (root / place).symlink_to(target)
        before = snapshot(outside, root)
        for words in (["resume", "-j", 1], ["report", sweep], ["prune", "--yes"], ["status"]):
            done = pernn(*words, "-r", root)
            require(len(complaints(done)) <= 2, done.stderr)
        require(snapshot(outside, root) == before, f"{place}: something outside was written")
        told = pernn("resume", "-j", 1, "-r", root)
        said = " ".join((told.stderr + told.stdout).split())
        require("symbolic link" in said, f"{place}: {told}")
    return {"num_cases": len(places)}
