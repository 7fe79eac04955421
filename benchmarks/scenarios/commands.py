"""What the scenarios of damage share: a sweep of tiny trials, real commands, and what they left."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SETTINGS = {
    "training.iterations": 20, "training.batch_size": 4, "training.log_interval": 3,
    "training.evaluation_interval": 10, "training.checkpoint_interval": 5,
    "training.keep_interval": 5, "core.hidden_size": 8, "encoding.kind": "sinusoidal",
    "encoding.size": 8, "embedding_size": 8, "task.length": 6, "task.num_held_out": 16,
}  # fmt: skip
LAST = "update-000000020"
SECONDS = 300
"""A command that takes longer hangs."""
DETERMINISTIC = ("metrics.jsonl", "result.json")
Counts = dict[str, int | float | str]
"""What a scenario found."""


def pernn(
    *words: object, under: Sequence[str] = (), **more: object
) -> subprocess.CompletedProcess[str]:
    """Run the real command, if wanted under another; a hang or a traceback breaks the promise."""
    done = subprocess.run(
        [*under, sys.executable, "-m", "pernn", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
        **more,  # type: ignore[arg-type]
    )
    said = done.stdout + done.stderr
    require("Traceback" not in said, f"{str(words)[:500]}: {said[-3000:]}")
    require(done.returncode in (0, 1, 2, 3, 4, 130), f"{words}: status {done.returncode}: {said}")
    return done


def require(kept: object, message: object) -> None:
    """Raise AssertionError where a promise is broken, under `python -O` too."""
    if not kept:
        raise AssertionError(message)


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines with which a command says what is wrong."""
    return [line for line in done.stderr.splitlines() if line.startswith("pernn: ")]


def to_toml(flat: Mapping[str, object]) -> str:
    """Return settings as a spec in TOML, which leaves out what is absent."""
    given = {path: value for path, value in flat.items() if value is not None}
    return "".join(f"{path} = {json.dumps(value)}\n" for path, value in given.items())


def setting(settings: Mapping[str, object]) -> list[str]:
    """Return the words that give a command these settings."""
    return [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]


def change(path: Path, **values: object) -> None:
    """Change values of a JSON file, whose checksum goes."""
    content = json.loads(path.read_text())
    content.pop("checksum", None)
    path.write_text(json.dumps({**content, **values}))


def run_sweep(root: Path, settings: Mapping[str, object] = SETTINGS) -> str:
    """Run a tiny sweep of 15 trials beside those that are there; gives its name."""
    words = ("-r", root, "-j", 2, "--json", *setting(settings))
    done = pernn("run", "vocabulary_size", *words)
    require(done.returncode == 0, done.stderr)
    return str(json.loads(done.stdout)["sweep"])


def undisturbed(directory: Path) -> tuple[Path, str]:
    """Run the tiny sweep, unless an earlier scenario did; gives its results and its name."""
    root = directory / "undisturbed"
    if (root / "sweeps").is_dir():
        return root, next((root / "sweeps").iterdir()).name
    return root, run_sweep(root)


def copy(source: Path, target: Path) -> Path:
    """Copy a folder to where there is nothing but an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


def resume(root: Path) -> subprocess.CompletedProcess[str]:
    """Go on with all sweeps of a results directory; no worker may leave a traceback either."""
    done = pernn("resume", "-r", root, "-j", 2)
    log = root / "workers.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    require("Traceback" not in text, text)
    return done


def unfinish(source: Path, target: Path) -> list[Path]:
    """Copy results as if killed after three checkpoints of four; gives the runs' directories."""
    runs = sorted((copy(source, target) / "runs").iterdir())
    for run in runs:
        (run / "result.json").unlink()
        shutil.rmtree(run / "checkpoints" / LAST)
    return runs


def contents(run: Path) -> dict[str, object]:
    """Return the deterministic files of a run, `None` for those that are missing.

    Of the spec, which is not written again, only the values: spaces may have been damaged.
    """
    last = run / "checkpoints" / LAST
    paths = [run / name for name in DETERMINISTIC]
    paths += [last / name for name in ("tensors.safetensors", "state.json", "manifest.json")]
    found = {path.name: path.read_bytes() if path.exists() else None for path in paths}
    spec = run / "spec.json"
    return {**found, spec.name: json.loads(spec.read_bytes()) if spec.exists() else None}


def all_contents(root: Path) -> dict[str, dict[str, object]]:
    """Return what `contents` does of every run in a results directory."""
    return {run.name: contents(run) for run in (root / "runs").iterdir()}


def end_alike(root: Path, expected: Mapping[str, object], when: str) -> None:
    """Go on with all sweeps, and hold all runs to the contents of the undisturbed ones."""
    require(resume(root).returncode == 0, when)
    runs = root / "runs"
    differ = [run for run, content in expected.items() if contents(runs / run) != content]
    require(not differ, f"{when}: other bits in {differ}")
