"""Trials that take a moment: settings for those of any experiment, and one of every task."""

from pernn.lab.runs import RunSpec

TINY = {"core.hidden_size": 8, "task.vocab_size": 4, "task.length": 5, "task.num_held_out": 16}
TINY |= {"training.iterations": 4, "training.batch_size": 4}
TINY |= {f"training.{one}_interval": 2 for one in ("log", "evaluation", "checkpoint")}
TRAINING = {"iterations": 12, "batch_size": 4, "warmup_updates": 2}
TRAINING |= {"log_interval": 3, "evaluation_interval": 5, "checkpoint_interval": 4}
SIZES = {"vocab_size": 6, "length": 4, "num_held_out": 32}
CORPUS = {"kind": "grammar", "num_paragraphs": 301, "num_held_out": 40, "num_words": 400}
# What a kind has beside them, or other than they are; None: it has no such option.
OPTIONS = {
    "infinite_vocabulary": {"vocab_size": None, "dimension": 6},
    "dual_frequency": {"num_held_out": None, "num_per_cell": 3},
    "variable_length": {"min_length": 2},
    "vocabulary_extension": {"num_known": 3},
    "language_modelling": {"vocab_size": 320, "num_held_out": None, "corpus": CORPUS},
}


def tiny(kind="reverse_ordering", core="lstm", *, hidden_size=8, training=None, **task):
    """Return a trial of a task, of other sizes and with another training where these are given."""
    options = {"kind": kind, **SIZES, **OPTIONS.get(kind, {}), **task}
    return RunSpec.load(
        {
            "task": {name: value for name, value in options.items() if value is not None},
            "core": {"kind": core, "hidden_size": hidden_size},
            "encoding": {"kind": "sinusoidal", "size": 8},
            "embedding_size": 8,
            "training": {**TRAINING, **(training or {})},
        }
    )


def after(first, spec):
    """Return a trial that goes on with the network of a first one."""
    stage = {"task": first.task.dump(), "training": first.training.dump()}
    return spec.override({"pretraining": stage})
