"""Counts the files of pernn that a first trial enters, from `pernn run` to its `result.json`.

    python benchmarks/walk.py [--files]

Functions are counted as they are called (`sys.setprofile`), in this process, without kernels; what
happens while a file is imported does not count.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType

import typer

os.environ["PERNN_KERNELS"] = "off"

import pernn
from pernn.lab.cli.app import app, register

ROOT = Path(pernn.__file__).parent
TINY = ["task.vocab_size=4", "task.length=3", "task.num_held_out=8", "core.hidden_size=4",
        "training.iterations=4", "training.batch_size=2", "training.checkpoint_interval=2",
        "training.evaluation_interval=2", "training.log_interval=2"]  # fmt: skip


def enter(results: str) -> set[str]:
    """Run one trial; return the files that were entered before its result was written."""
    entered, num_imports = set[str](), 0

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal num_imports
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            num_imports += 1 if event == "call" else -1
        elif event == "call" and not num_imports and code.co_filename.startswith(str(ROOT)):
            entered.add(str(Path(code.co_filename).relative_to(ROOT)))
        elif event == "return" and code.co_name == "write_result":
            sys.setprofile(None)

    words = ["run", "vocabulary_size", "--runner", "inline", "--max-trials", "1", "--force"]
    words += ["-r", results, *(word for one in TINY for word in ("--set", one))]
    register(words)
    sys.setprofile(profile)
    try:
        app(words, standalone_mode=False)
    finally:
        sys.setprofile(None)
    return entered


def main(*, files: bool = False) -> None:
    """Count the files of pernn that a first trial enters; name them if asked."""
    with tempfile.TemporaryDirectory(prefix="pernn-walk-") as folder:
        found = sorted(enter(folder))
    print(json.dumps({"files": len(found)} | ({"names": found} if files else {}), indent=2))


if __name__ == "__main__":
    typer.run(main)
