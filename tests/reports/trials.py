"""Plausible finished trials, made up."""

import random
from typing import Any

from pernn.experiments import Contrast, Experiment, FigureLayout

CODE = Contrast("encoding.kind", treated="sinusoidal", baseline="none")
SEEDS = (111, 222, 333, 444, 555)


def trial(**columns: Any) -> dict[str, Any]:
    """One record; dots in column names are written as two underscores."""
    return {name.replace("__", "."): value for name, value in columns.items()}


def trials(
    cores: tuple[str, ...] = ("gru", "lstm"),
    vocab_sizes: tuple[int, ...] = (4, 8, 16, 32),
    seeds: tuple[int, ...] = SEEDS,
) -> list[dict[str, Any]]:
    """A grid in which the code helps, more so for large vocabularies."""
    noise = random.Random(1)
    records = []
    for seed in seeds:
        for size in vocab_sizes:
            for core in cores:
                for code in ("none", "sinusoidal"):
                    ease = 4.0 if code == "none" else 200.0
                    accuracy = min(1.0, ease / (ease + size) + noise.uniform(0, 0.05))
                    records.append(
                        trial(
                            run=f"{len(records):016x}",
                            task__vocab_size=size,
                            task__length=32,
                            core__kind=core,
                            core__hidden_size=128,
                            encoding__kind=code,
                            protocol="as-run",
                            training__precision="fp32",
                            training__iterations=1000,
                            seed=seed,
                            num_parameters=1000 + size,
                            token_accuracy=accuracy,
                            damerau_levenshtein=32 * (1 - accuracy),
                            loss=2 * (1 - accuracy),
                        )
                    )
    return records


def experiment(**changes: Any) -> Experiment:
    """A question with a figure like the paper's first, and no claims."""
    values: dict[str, Any] = {
        "name": "vocabulary_size",
        "question": "How large a vocabulary?",
        "source": "000 Fig. 2",
        "scales": {},
        "claims": (),
        "figure": FigureLayout(
            x="task.vocab_size",
            panels="core.kind",
            lines="encoding.kind",
            metrics=("token_accuracy", "damerau_levenshtein"),
            contrast=CODE,
            x_base=2,
        ),
        "labels": {
            "none": "Vanilla",
            "sinusoidal": "Position-encoded",
            "gru": "GRU",
            "token_accuracy": "Token accuracy",
            "task.vocab_size": "Vocabulary size K",
        },
    }
    return Experiment(**{**values, **changes})
