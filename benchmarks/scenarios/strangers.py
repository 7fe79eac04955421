"""Data of strangers that name code: what only reads them executes nothing.

A cloned folder is the current one: its modules can be imported, and its data name them.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from pernn.lab.config import fingerprint
from pernn.lab.store import load_sweep, save_sweep
from pernn.lab.trials import publish

from .commands import Counts, pernn, require, undisturbed

EVIL = "from pathlib import Path\n\nPath(__file__).with_name('executed').touch()\n"
NAMED = "evilmod:Config"
READING = (
    ("status",), ("status", "SWEEP"), ("report", "SWEEP"), ("report", "--all"), ("prune", "--yes"),
    ("export", "SWEEP", "-o", "out.csv"), ("publish", "SWEEP"),
    ("evidence", "--to", "pages"), ("compare", "seed=111", "seed=222", "--sweep", "SWEEP"),
)  # fmt: skip


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
