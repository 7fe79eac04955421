"""The grids of the paper, spelt out a second time: what every trial of a scale must be."""

import itertools

POWERS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
ENCODING_KINDS = ["none", "sinusoidal"]


def crossed(*axes):
    """Dotted path → value for every combination."""
    return [
        {path: value for part in parts for path, value in part.items()}
        for parts in itertools.product(*axes)
    ]


def each(path, *values):
    return [{path: value} for value in values]


def sizes(*pairs):
    return [{"task.vocab_size": size, "task.length": length} for size, length in pairs]


DUAL_FREQUENCY = crossed(
    each("task.kind", "dual_frequency"),
    each("task.num_per_cell", 16),
    each("task.num_held_out", None),
    each("training.keep_interval", 5_000),
    [
        {"core.kind": core, "task.vocab_size": size, "task.length": 64}
        for core, size in (("gru", 64), ("lstm", 1024), ("s4d", 2048))
    ],
    each("encoding.kind", *ENCODING_KINDS),
)
PAPER = {
    "vocabulary_size": crossed(
        each("task.kind", "reverse_ordering"),
        each("task.length", 64),
        each("task.vocab_size", *POWERS),
        each("core.kind", "elman", "gru", "lstm", "s4d"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "input_length": crossed(
        each("task.kind", "reverse_ordering"),
        each("task.length", 64, 128, 256, 512),
        each("task.vocab_size", 2),
        each("core.kind", "elman", "gru", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "constant_information": crossed(
        each("task.kind", "reverse_ordering"),
        sizes((2, 768), (4, 384), (8, 256), (64, 128), (4096, 64)),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "vocabulary_extension": crossed(
        each("task.kind", "vocabulary_extension"),
        [
            {"task.vocab_size": size, "task.num_known": size // 2, "task.length": 64}
            for size in POWERS
            if size >= 128
        ],
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
        [
            {"pretraining.task.kind": None, "pretraining.training.iterations": None},
            {
                "pretraining.task.kind": "reverse_ordering",
                "pretraining.training.iterations": 300_000,
            },
        ],
    ),
    "dual_frequency": DUAL_FREQUENCY,
    "gradient_stability": [
        {
            **row,
            "analysis.num_per_condition": 256,
            "analysis.source_step": 23 if row["core.kind"] == "s4d" else 1,
        }
        for row in DUAL_FREQUENCY
    ],
    "variable_length": crossed(
        each("task.kind", "variable_length"),
        sizes((16_384, 64)),
        each("task.min_length", 32),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "language_modelling": crossed(
        each("task.kind", "language_modelling"),
        each("task.corpus.name", "wikitext-103"),
        sizes((32_768, 1_024)),
        each("task.num_held_out", None),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
        each("training.iterations", 30_000),
    ),
    "delayed_addition": crossed(
        each("task.kind", "delayed_addition"),
        sizes((896, 16), (960, 16), (1024, 16), (1088, 16)),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
        each("training.iterations", 600_000),
    ),
    "sorting": crossed(
        each("task.kind", "sorting", "reverse_ordering"),
        each("task.length", 64),
        each("task.vocab_size", *POWERS),
        each("core.kind", "elman", "gru", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "predecessor_query": crossed(
        each("task.kind", "predecessor_query"),
        sizes((512, 16), (640, 16), (768, 16), (896, 16), (1024, 16)),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "alternative_encodings": crossed(
        [
            {"task.kind": "reverse_ordering"},
            {"task.kind": "variable_length", "task.min_length": 32},
        ],
        sizes((16_384, 64)),
        each("core.kind", "lstm"),
        each("encoding.kind", "sinusoidal", "learned", "random", "none"),
    ),
    "double_vanilla": crossed(
        each("task.kind", "reverse_ordering", "sorting"),
        each("task.length", 64),
        each("task.vocab_size", *POWERS),
        each("core.kind", "lstm"),
        each("encoding.kind", "none", "repeated_embedding", "sinusoidal"),
    ),
    "autoregressive": crossed(
        each("task.length", 64),
        each("task.vocab_size", *POWERS),
        each("core.kind", "lstm"),
        [
            *(
                {"task.kind": "autoregressive", "task.rule": rule, "encoding.kind": "none"}
                for rule in ("reverse", "sort")
            ),
            *crossed(
                each("task.kind", "reverse_ordering", "sorting"),
                each("encoding.kind", *ENCODING_KINDS),
            ),
        ],
    ),
    "infinite_vocabulary": crossed(
        each("task.kind", "infinite_vocabulary"),
        each("task.length", 64),
        each("task.dimension", 8, 16, 32, 64, 128, 256, 512),
        each("core.kind", "elman", "gru", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "copying_memory": crossed(
        each("task.kind", "copying_memory"),
        sizes((8, 10)),
        each("task.hold_time", 60, 70, 80, 90, 100),
        each("core.kind", "lstm"),
        each("encoding.kind", *ENCODING_KINDS),
    ),
    "more_training": crossed(
        each("task.kind", "reverse_ordering"),
        each("task.length", 64),
        [
            {"core.kind": "gru", "task.vocab_size": 64},
            {"core.kind": "lstm", "task.vocab_size": 1024},
        ],
        [
            {"encoding.kind": "sinusoidal"},
            {"encoding.kind": "none"},
            {"encoding.kind": "none", "training.iterations": 600_000},
            {"encoding.kind": "none", "training.iterations": 1_200_000},
            {"encoding.kind": "none", "training.batch_size": 1024},
            {"encoding.kind": "none", "training.batch_size": 2048},
        ],
    ),
}
"""The grids of the paper, spelt out a second time."""

COMMON = {
    "preset": "as-run",
    "embedding_size": 512,
    "core.hidden_size": 512,
    "task.num_held_out": 1024,
    "training.iterations": 300_000,
    "training.batch_size": 512,
    "training.learning_rate": 1e-3,
    "training.warmup_updates": 1_000,
    "training.checkpoint_interval": 5_000,
}
"""What every trial of the paper has unless its row says otherwise."""
