"""A sweep that takes a second."""

from command_line import call

TINY = [
    "training.iterations=20",
    "training.batch_size=4",
    "core.hidden_size=8",
    "encoding.size=8",
    "embedding_size=8",
    "task.length=6",
    "task.num_held_out=16",
    "training.checkpoint_interval=5",
    "seed=[111,222,333,444,555]",
]


def tiny_run(root, *more):
    # Codes without a size refuse one, so every trial here has a code.
    settings = [word for text in TINY for word in ("--set", text)]
    settings += ["--set", "encoding.kind=sinusoidal", "--set", "task.vocab_size=4"]
    return call("run", "vocabulary_size", "-r", root, "--runner", "inline", *settings, *more)


def sweep(root):
    (directory,) = (root / "sweeps").iterdir()
    return directory
