"""Shared parts of claims and figures: cores, gains, labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .experiment import Columns, FigureLayout
from .grids import ENCODING, UPDATES, VOCABULARY, Settings
from .predicates import (
    LEVELS,
    Claim,
    Contrast,
    Differs,
    Grows,
    Place,
    Predicate,
    Where,
    pace_column,
)

WORDS = {
    "elman": "Elman network",
    "gru": "GRU",
    "lstm": "LSTM",
    "s4d": "S4D model",
    "min_gru": "minimal GRU",
    "min_lstm": "minimal LSTM",
    "lru": "linear recurrent unit",
    "gated_delta": "gated delta rule",
    "pernn.lab.reference:TransformerConfig": "Transformer",
    "none": "vanilla",
    "sinusoidal": "encoded",
    "reverse_ordering": "reversing",
    "reverse": "reversing",
    "sort": "sorting",
}
"""Settings as sentences call them."""

ACCURACY = "token_accuracy"
POINT = 0.01
"""A gain below one point of accuracy counts as none."""

PAPER_SETTING: Settings = {"task.length": 64, "core.hidden_size": 512, UPDATES: 300_000}
"""What statements about the paper's own scale are about, beside its K."""

OURS = "ours: the text gives no number"
"""Origin of a margin that the text's words leave open."""

Source = Place | tuple[Place, ...]
"""Where a claim stands, as `Claim.source` takes it."""

PLACE = (Place("v3", "section 2.1 and Fig. 2"), Place("v1", "section 4.1 and Fig. 2"))
"""Where vanilla and encoded networks reverse tokens: what most of our own questions are after."""

LABELS = {
    **{pace_column(level): f"Updates to {100 * level:.0f} %" for level in LEVELS},
    "task.vocab_size": "Vocabulary size K",
    "task.length": "Input length L",
    "task.hold_time": "Steps of waiting",
    "task.rare_share": "Share r of Rare tokens",
    "task.exponent": "Exponent of the Zipf law",
    "task.dimension": "Dimension",
    "task.min_length": "Shortest input",
    "task.num_held_out": "Held-out sequences",
    "task.num_known": "Tokens known before",
    "task.num_per_cell": "Test sequences of each place",
    "task.rule": "Order of the outputs",
    "task.corpus.kind": "Text",
    "task.corpus.num_paragraphs": "Paragraphs",
    "task.corpus.num_held_out": "Held-out paragraphs",
    "task.corpus.num_words": "Words of the grammar",
    "analysis.num_per_condition": "Pairs of sequences of each condition",
    "analysis.source_step": "Gradients from t",
    "analysis.map_per_condition": "Pairs in the map",
    "analysis.num_sequences": "Sequences looked at",
    "analysis.num_batches": "Batches of compared gradients",
    "seed": "Seed",
    "task.kind": "Task",
    "core.kind": "Core",
    "core.hidden_size": "Hidden size",
    "task.codes": "Code beside each token",
    "encoding.kind": "Encoding",
    "encoding.masked": "Silent phase",
    "encoding.frequencies": "Frequencies",
    "encoding.phases": "Phases",
    "encoding.base": "Base",
    "training.iterations": "Updates",
    "training.batch_size": "Batch size",
    "training.learning_rate": "Peak learning rate",
    "training.schedule": "Learning rate",
    "training.encoding_schedule": "Encoding is there",
    "training.optimizer": "Optimizer",
    "training.frozen_embedding": "Frozen token vectors",
    "adam_0.999": "Adam, β₂ 0.999",
    "sgd": "Momentum",
    "sign": "Signs of momentum",
    "reverse_ordering": "Reverse ordering",
    "variable_length": "Variable length",
    "sorting": "Sorting",
    "pernn.lab.reference:TransformerConfig": "Transformer",
    "elman": "Elman",
    "gru": "GRU",
    "lstm": "LSTM",
    "min_gru": "MinGRU",
    "min_lstm": "MinLSTM",
    "lru": "LRU",
    "s4d": "S4D",
    "gated_delta": "Gated delta rule",
    "none": "Vanilla",
    "repeated_embedding": "Double vanilla",
    "sinusoidal": "Position-encoded",
    "learned": "Learned",
    "constant": "Constant",
    "random": "Random",
    "token_accuracy": "Token accuracy",
    "ascending_pair_share": "Share of ascending neighbours",
    "ascending_sequence_share": "Share of ascending sequences",
    "solved": "Share of trials at 1",
    "stuck": "Share of trials at chance",
    "solved_or_stuck": "Share of trials at either",
    "perplexity": "Test perplexity",
    "sequence_accuracy": "Sequence accuracy",
    "loss": "Loss",
    "train_loss": "Training loss",
    "test_loss": "Test loss",
    "similarity": "Gradient similarity",
    "update": "Update",
    "percent": "Percent of the training",
    "quarter": "Quarter of the input",
    "target": "Target",
    "disturbants": "Disturbants",
    "position": "Position",
    "condition": "Target among disturbants",
    "damerau_levenshtein": "Damerau–Levenshtein distance",
}
"""Display names of columns and values, as most figures have them, in the order of figures."""


def together(conditions: Mapping[str, Settings], columns: Sequence[str]) -> dict[str, str]:
    """Return labels of values that count together, by name → condition.

    Conditions that have none of the columns are left out.
    """
    return {
        ", ".join(str(one.get(column)) for column in columns): name
        for name, one in conditions.items()
        if not one.keys().isdisjoint(columns)
    }


def lay_out(x: Columns, *metrics: str, **more: Any) -> FigureLayout:
    """Lay out a panel per core, vanilla against encoded.

    Fields of a `FigureLayout` that are given say otherwise.
    """
    usual = {"panels": "core.kind", "lines": "encoding.kind", "contrast": ENCODING}
    return FigureLayout(x=x, metrics=metrics, **{**usual, **more})


def claims_about(
    name: str,
    statement: str,
    predicate: Predicate,
    conditions: Sequence[Settings],
    source: Source | Mapping[str, Source],
    *,
    table: str | None = None,
    ours: bool = False,
    **words: str,
) -> list[Claim]:
    """Make the same claim about each of several conditions.

    Args:
        name: `{core}` stands for the condition's `core.kind`, other parts likewise; of several
            settings of a part the last counts.
        statement: `{core}` stands for what sentences call it; no full stop.
        predicate: What must hold; each claim's is about the trials of its condition alone.
        conditions: Settings of the trials that a claim is about.
        source: Where the text says so, for each value of the first setting if it differs.
        table: As of a `Claim`.
        ours: Whether this is our check, and no statement of the text.
        words: What else in braces stands for.
    """
    found = []
    for here in conditions:
        kinds = {path.partition(".")[0]: value for path, value in here.items()}
        called = {part: WORDS.get(kind, kind) for part, kind in kinds.items()}
        said = statement.format(**called, **words) + (" (our check)." if ours else ".")
        place = source[next(iter(here.values()))] if isinstance(source, Mapping) else source
        about = replace(predicate, where={**here, **predicate.where})
        found.append(Claim(name.format(**kinds, **words), said, place, about, table))
    return found


def encoding_helps(core: str, source: Source) -> Claim:
    """Claim that the sinusoidal encoding raises a core's mean token accuracy."""
    said = f"The sinusoidal encoding raises the {WORDS[core]}'s token accuracy."
    about = Differs(ACCURACY, {"core.kind": core}, ENCODING, VOCABULARY)
    return Claim(f"encoding_helps_{core}", said, source, about)


def gain_grows(core: str, source: Source) -> Claim:
    """Claim that a core's gain from the encoding grows with the vocabulary."""
    said = f"The {WORDS[core]}'s gain from the encoding grows with the vocabulary."
    about = Grows(ACCURACY, {"core.kind": core}, ENCODING, along=VOCABULARY)
    return Claim(f"gain_grows_{core}", said, source, about)


def falls(where: Where, metric: str = ACCURACY, along: str = VOCABULARY) -> Grows:
    """State that a metric falls as a setting grows."""
    return Grows(metric, where, None, along, sign=-1)


def no_gain(
    where: Where,
    contrast: Contrast,
    cells: str,
    margin: float = POINT,
    origin: str = OURS,
    metric: str = ACCURACY,
) -> Differs:
    """State that the gain is below a margin."""
    origin = origin if margin else ""
    return Differs(metric, where, contrast, cells, sign=-1, margin=-margin, margin_origin=origin)
