"""A sweep that takes a second."""

import json

from command_line import call
from tiny import TINY

# Vanilla trials have no encoding whose size could be set, so every trial here has one.
CHANGES = {**TINY, "encoding.kind": "sinusoidal", "seed": [111, 222, 333, 444, 555]}


def tiny_run(root, *more):
    settings = [f"--set={path}={json.dumps(value)}" for path, value in CHANGES.items()]
    return call("run", "vocabulary_size", "-r", root, "--runner", "inline", *settings, *more)


def sweep(root):
    (directory,) = (root / "sweeps").iterdir()
    return directory
