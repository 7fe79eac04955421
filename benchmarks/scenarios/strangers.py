"""Data of strangers that name code: what only reads them executes nothing.

A cloned folder is the current one: its modules can be imported, and its data name them.
"""

import json
import os
import pickle
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from safetensors.torch import load_file, save
from torch import Tensor, int8

from pernn import PositionEncodedRNN
from pernn.errors import PernnError
from pernn.lab import from_pretrained, save_pretrained
from pernn.lab.config import fingerprint
from pernn.lab.store import load_sweep, save_sweep
from pernn.lab.trials import publish

from .commands import Counts, copy, pernn, require, undisturbed
from .every_call import REFUSED, await_end, start
from .hostile import MEMORY

EVIL = "from pathlib import Path\n\nPath(__file__).with_name('executed').touch()\n"
NAMED = "evilmod:Config"
READING = (
    ("status",), ("status", "SWEEP"), ("report", "SWEEP"), ("report", "--all"), ("prune", "--yes"),
    ("export", "SWEEP", "-o", "out.csv"), ("export", "--hub", "hub"), ("publish", "SWEEP"),
    ("evidence", "--to", "pages"), ("compare", "seed=111", "seed=222", "--sweep", "SWEEP"),
)  # fmt: skip
CHANGES: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda one: one * float("nan"),
    lambda one: one / 0,
    lambda one: one.to(int8),
    lambda one: one[:1].clone(),
)


def foreign_parts(directory: Path) -> Counts:
    """Name a module of the current folder in each kind of data, and read it with every verb."""
    work, mark = directory / "work", directory / "work" / "executed"
    source, sweep = undisturbed(directory)
    count = 0
    for place in ("sweep.json", "published", "spec.json", "entry point"):
        shutil.rmtree(work, ignore_errors=True)
        (work / "pages").mkdir(parents=True)
        (work / "evilmod.py").write_text(EVIL)
        root = Path(shutil.copytree(source, work / "results"))
        _name_code(root, sweep, place, work)
        for words in READING:
            named = [sweep if word == "SWEEP" else word for word in words]
            pernn(*named, under=("env", "PERNN_EVIDENCE=evidence"), cwd=work)
            require(not mark.exists(), f"{place}: {' '.join(words)} executed it")
            count += 1
        if place == "sweep.json":
            pernn("resume", "-j", 1, cwd=work)
            require(mark.exists(), "the module is a dud: whoever resumes such a run imports it")
    return {"num_cases": count}


def _name_code(root: Path, sweep: str, place: str, work: Path) -> None:
    run = min((root / "runs").iterdir())
    stored = load_sweep(root, sweep)
    overrides = {**stored.overrides, "core.kind": NAMED}
    if place == "published":
        publish(root, replace(stored, overrides=overrides), work / "evidence")
    elif place == "spec.json":
        spec = json.loads((run / "spec.json").read_text())["spec"]
        spec |= {"core": {**spec["core"], "kind": NAMED}, "analysis": {}}
        run = run.with_name(fingerprint(spec))
        run.mkdir()
        values = {"format": 1, "fingerprint": run.name, "spec": spec}
        (run / "spec.json").write_text(json.dumps(values))
    else:
        (run / "result.json").unlink()
        kind = NAMED if place == "sweep.json" else "evil"
        save_sweep(root, replace(stored, overrides={**overrides, "core.kind": kind}))
    if place == "entry point":
        about = work / "evil-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[pernn.cores]\nevil = {NAMED}\n")


def hub_folders(directory: Path) -> Counts:
    """Damage a network's folder and name code in it; loading ends in one line, at once."""
    source, work = directory / "net", directory / "hub"
    sizes = {"embedding_size": 4, "hidden_size": 4}
    save_pretrained(PositionEncodedRNN(4, "gru", "sinusoidal", **sizes), source)
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    spec = {"task": {"kind": "reverse_ordering"}, "core": {"kind": "lstm"}, "encoding": "none"}
    texts = ["[]", "5", "null", '"x"', "{}", "{", "[" * 100_000, '{"spec": []}']
    texts += [
        json.dumps({"network": {**config["network"], key: NAMED}}) for key in ("core", "encoding")
    ]
    for key in ("core", "encoding", "task"):
        texts += [json.dumps({"spec": {**spec, key: kind}}) for kind in (NAMED, {"kind": NAMED})]
    texts.append(json.dumps({"spec": {**spec, "pretraining": {"task": NAMED}}}))
    cases: list[tuple[str, Callable[[Path], object]]] = []
    cases += [("config.json", partial(_write, text.encode())) for text in texts]
    for name in ("config.json", "model.safetensors"):
        cases += [(name, how) for how in (os.mkfifo, _zeros, Path.mkdir, lambda path: None)]
    content = (source / "model.safetensors").read_bytes()
    ends = (0, 1, 7, 8, 60, len(content) // 2, len(content) - 1)
    changed = [{name: change(one) for name, one in weights.items()} for change in CHANGES]
    files = [*(content[:end] for end in ends), *map(save, changed), pickle.dumps({"a": 1})]
    cases += [("model.safetensors", partial(_write, file)) for file in files]
    for name, damage in cases:
        copy(source, work)
        (work / "evilmod.py").write_text(EVIL)
        (work / name).unlink()
        damage(work / name)
        require(await_end(start(load, work), name) == REFUSED, f"{name}: not refused in one line")
        require(not (work / "executed").exists(), f"{name}: executed")
    return {"num_cases": len(cases)}


def load(folder: Path) -> None:
    """Load a network from the current folder, in little memory."""
    os.chdir(folder)
    sys.path.insert(0, "")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        from_pretrained(".")
    except PernnError:
        sys.exit(REFUSED)


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")
