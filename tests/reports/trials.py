"""Plausible finished trials, made up."""

import random
from functools import cache
from itertools import product
from typing import Any

from pernn.lab.experiments import Contrast, Experiment, FigureLayout
from pernn.lab.runs import RunSpec
from pernn.lab.trials import Trial, is_setting

ENCODING = Contrast("encoding.kind", treated="sinusoidal", baseline="none")
SEEDS = (111, 222, 333, 444, 555)
CODES, CLASSES = ("none", "sinusoidal"), ("frequent", "rare")
VARIED = ("task.vocab_size", "core.kind", "encoding.kind", "seed")


def trial(**columns):
    """One record; dots in column names are written as two underscores."""
    return {name.replace("__", "."): value for name, value in columns.items()}


def trials(cores=("gru", "lstm"), vocab_sizes=(4, 8, 16, 32), seeds=SEEDS):
    """A grid in which the encoding helps, more so for large vocabularies."""
    noise, records = random.Random(1), []
    for seed, size, core, code in product(seeds, vocab_sizes, cores, CODES):
        ease = 4.0 if code == "none" else 200.0
        accuracy = min(1.0, ease / (ease + size) + noise.uniform(0, 0.05))
        records.append(
            {"run": f"{len(records):016x}", "task.vocab_size": size, "task.length": 32}
            | {"core.kind": core, "core.hidden_size": 128, "encoding.kind": code}
            | {"preset": "as-run", "training.precision": "fp32", "training.iterations": 1000}
            | {"seed": seed, "num_parameters": 1000 + size, "token_accuracy": accuracy}
            | {"damerau_levenshtein": 32 * (1 - accuracy), "loss": 2 * (1 - accuracy)}
        )
    return records


@cache
def planned():
    return tuple(
        RunSpec().override({column: record[column] for column in VARIED}) for record in trials()
    )


POINTS = FigureLayout(
    "task.vocab_size", "core.kind", "encoding.kind", ("token_accuracy", "damerau_levenshtein"),
    contrast=ENCODING, x_base=2,
)  # fmt: skip
LABELS = {
    "none": "Vanilla", "sinusoidal": "Position-encoded", "gru": "GRU",
    "token_accuracy": "Token accuracy", "task.vocab_size": "Vocabulary size K",
    "sinusoidal, phase 3": "Third arm", "encoding.kind, encoding.masked": "Arm",
}  # fmt: skip


def finished():
    """The trials of the plan, by its names."""
    runs = [spec.fingerprint() for spec in planned()]
    return [{**one, "run": run} for one, run in zip(trials(), runs, strict=True)]


def experiment(**changes):
    """A question with a figure like the paper's first, and no claims."""
    about = {"name": "vocabulary_size", "question": "How large a vocabulary?"}
    about |= {"source": "v3, Fig. 2", "scales": {}, "claims": ()}
    return Experiment(**{**about, "figure": POINTS, "labels": LABELS, **changes})


def columns(names, rows):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def by_length(seeds=SEEDS):
    noise, records = random.Random(2), trials(("lstm",), (32,), seeds)
    lengths = list(range(5, 25))
    for record in records:
        ease = 0.01 if record["encoding.kind"] == "none" else 0.001
        accuracies = [1 - ease * length - noise.uniform(0, 0.05) for length in lengths]
        table = {"length": lengths, "token_accuracy": accuracies, "num_sequences": [4] * 20}
        record["tables"] = {"by_length": table}
    return records


def by_condition(seeds=SEEDS):
    """Trials that are harmed by rare disturbants, whose networks differ in size by seed."""
    noise, records = random.Random(3), trials(("gru", "lstm"), (32,), seeds)
    for record in records:
        record["num_parameters"] = 1000 + 2 * (record["seed"] > 300)
        cells = list(product(CLASSES, CLASSES, range(1, 6)))
        table = columns(("target", "disturbants", "position"), cells)
        table["token_accuracy"] = [
            1 - 0.4 * (record["encoding.kind"] == "none" and b == "rare") - noise.uniform(0, 0.05)
            for _, b, _ in cells
        ]
        record["tables"] = {"by_position": table | {"num_sequences": [4] * len(cells)}}
    return records


CONDITIONS = ("Frequent among Rare", "Rare among Frequent")


def stability(seeds=SEEDS, shift=0.0):
    noise, records = random.Random(5), trials(("gru", "lstm"), (32,), seeds)
    for record in records:
        cells = list(product((10, 20, 40), CONDITIONS, (1, 2, 3)))
        table = columns(("update", "condition", "position"), cells)
        similarity = [u / 80 + p / 10 + noise.uniform(0, 0.1) + shift for u, _, p in cells]
        table["similarity"] = similarity
        table["target_accuracy"] = [(one + noise.uniform(0, 0.2)) / 2 for one in similarity]
        table["perplexity"] = [200.0 - 100 * one for one in similarity]
        record["tables"] = {"stability_map": table}
    return records


def curves(records, lines):
    """Return trials with these settings, and all with one log."""
    kinds: dict[str, dict[str, list[Any]]] = {"train": {}, "test": {}}
    for line in lines:
        for name, value in line.items():
            if name != "kind":
                kinds[line["kind"]].setdefault(name, []).append(value)
    result = {"metrics": {}, "tables": {"by_update": kinds["test"]}}
    specs = [{key: one[key] for key in one if is_setting(key)} for one in records]
    runs = [one["run"] for one in records]
    return [Trial(*of, result, {}, kinds["train"]) for of in zip(runs, specs, strict=True)]
