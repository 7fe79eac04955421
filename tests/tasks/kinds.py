"""Every kind of task as the laws need it: naive rules, shapes, small spaces, random sizes."""

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

from pernn.lab.interfaces import UNSCORED
from pernn.lab.tasks import TASKS


def naive_reverse(config, tokens):
    answer = []
    for token in tokens:
        answer.insert(0, token)
    return answer


def naive_sorting(config, tokens):
    return [token for token in range(config.vocab_size) for _ in range(tokens.count(token))]


def naive_delayed_addition(config, tokens):
    answer = []
    for j in range(1, config.length + 1):
        total = tokens[config.length - j] + tokens[config.length + j - 1]
        while total >= config.vocab_size:
            total -= config.vocab_size
        answer.append(total)
    return answer


def naive_predecessor(config, tokens):
    *ids, asked = tokens
    assert len(set(ids)) == len(ids) == config.length
    for before, token in itertools.pairwise(ids):
        if token == asked:
            return [before]
    raise AssertionError("the query is none of the ids, or the first")


def naive_copying(config, tokens):
    for token in tokens[config.length :]:
        assert token == config.vocab_size + 1  # HOLD
    assert len(tokens) == config.length + config.hold_time
    return tokens[: config.length]


def naive_variable_length(config, tokens):
    """Every step after the shortest inputs has an answer or none."""
    query = config.vocab_size
    length = tokens.index(query) if query in tokens else len(tokens)
    assert config.min_length <= length <= config.length
    assert tokens[length:] == [query] * (2 * config.length - length)
    answers = {length + step: tokens[length - 1 - step] for step in range(length)}
    return [answers.get(step, UNSCORED) for step in range(config.min_length, 2 * config.length)]


def naive_autoregressive(config, tokens):
    """The outputs themselves are shown, one step after they are due."""
    inputs, (dummy, *shown) = tokens[: config.length], tokens[config.length :]
    assert dummy == config.vocab_size
    answer = {"reverse": naive_reverse, "sort": naive_sorting}[config.rule](config, inputs)
    assert shown == answer[:-1]
    return answer


NAIVE = {
    "reverse_ordering": naive_reverse,
    "sorting": naive_sorting,
    "delayed_addition": naive_delayed_addition,
    "predecessor_query": naive_predecessor,
    "copying_memory": naive_copying,
    "variable_length": naive_variable_length,
    "dual_frequency": naive_reverse,
    "autoregressive": naive_autoregressive,
}
# Kind → token steps, queries, extra rows, as the tables of the paper have them.
SHAPES = {
    "reverse_ordering": lambda c: (c.length, c.length, 1),
    "sorting": lambda c: (c.length, c.length, 1),
    "delayed_addition": lambda c: (2 * c.length, 0, 0),
    "predecessor_query": lambda c: (c.length + 1, 0, 0),
    "copying_memory": lambda c: (c.length + c.hold_time, c.length, 2 if c.hold_time else 1),
    "variable_length": lambda c: (2 * c.length, 0, 1),
    "dual_frequency": lambda c: (c.length, c.length, 1),
    "autoregressive": lambda c: (2 * c.length, 0, 1),
}
# Kind → a task of about a thousand sequences and their exact number.
SPACES = {
    "reverse_ordering": ({"vocab_size": 2, "length": 11}, 2048),
    "sorting": ({"vocab_size": 2, "length": 11}, 2048),
    "delayed_addition": ({"vocab_size": 2, "length": 5}, 1024),
    "predecessor_query": ({"vocab_size": 6, "length": 4}, 6 * 5 * 4 * 3 * 3),
    "copying_memory": ({"vocab_size": 2, "length": 11, "hold_time": 3}, 2048),
    "variable_length": ({"vocab_size": 2, "length": 10, "min_length": 8}, 256 + 512 + 1024),
    "dual_frequency": ({"vocab_size": 4, "length": 4, "rare_share": 0.4}, 256),
    "autoregressive": ({"vocab_size": 2, "length": 11, "rule": "sort"}, 2048),
}


def held(kind, number):
    """Name the option that says how many test sequences there are."""
    return {"num_per_cell" if kind == "dual_frequency" else "num_held_out": number}


def num_test(config):
    match config.kind:
        case "variable_length":
            return (config.length - config.min_length + 1) * config.num_held_out
        case "dual_frequency":
            return 2 * 2 * config.length * config.num_per_cell
        case "longer_inputs":
            lengths = [*range(config.min_length, config.length + 1), *config.tested_lengths]
            return len(lengths) * config.num_held_out
        case "vocabulary_extension":
            return 2 * config.num_held_out
    return config.num_held_out


KINDS = list(NAIVE)
# What these show has tests of its own: codes, longer test sequences, vectors, two sorts of
# sequences, text, sequences that are too rare to be found.
ELSEWHERE = {
    "coded_reversal",
    "longer_inputs",
    "infinite_vocabulary",
    "vocabulary_extension",
    "language_modelling",
    "zipf",
}
every_task = pytest.mark.parametrize("kind", KINDS)
every_task_but_text = pytest.mark.parametrize(
    "kind", [*KINDS, *sorted(ELSEWHERE - {"language_modelling"})]
)
# Kind → options beside its sizes, none of which is as it is by default.
OPTIONS = {
    "variable_length": {"min_length": 6},
    "dual_frequency": {"rare_share": 0.5},
    "coded_reversal": {"codes": "shared_noise", "code_size": 6},
    "longer_inputs": {
        "min_length": 6, "tested_lengths": [10], "codes": "onset", "code_size": 6
    },
    "vocabulary_extension": {"num_known": 500},
    "zipf": {"exponent": 0.5},
}  # fmt: skip


def num_possible(kind, vocab_size, length):
    match kind:
        case "delayed_addition":
            return vocab_size ** (2 * length)
        case "predecessor_query":
            count = length - 1
            for used in range(length):
                count *= vocab_size - used
            return count
    return vocab_size**length


@st.composite
def tasks(draw):
    kind = draw(st.sampled_from(KINDS))
    more = {}
    if kind == "dual_frequency":
        length, half = draw(st.integers(3, 12)), draw(st.integers(2, 20))
        share = draw(st.sampled_from([None, 0.125, 0.25, 0.5, 0.9]))
        most = min(half**length // length, 3)
        return TASKS.find(kind)(
            vocab_size=2 * half,
            length=length,
            rare_share=share,
            num_per_cell=draw(st.integers(1, most)),
        )
    if kind == "predecessor_query":
        length = draw(st.integers(2, 12))
        vocab_size = draw(st.integers(length, 40))
    else:
        vocab_size, length = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    if kind == "copying_memory":
        more["hold_time"] = draw(st.integers(0, 5))
    if kind == "autoregressive":
        more["rule"] = draw(st.sampled_from(["reverse", "sort"]))
    fewest = length
    if kind == "variable_length":
        fewest = more["min_length"] = draw(st.integers(1, length))
    most = min(num_possible(kind, vocab_size, fewest) - 1, 40)
    return TASKS.find(kind)(
        vocab_size=vocab_size, length=length, num_held_out=draw(st.integers(1, most)), **more
    )


def large(kind):
    """Return a task of so many sequences that none is drawn twice."""
    ids = {"dimension": 9} if kind == "infinite_vocabulary" else {"vocab_size": 1000}
    sizes = {"kind": kind, "length": 8, **ids, **held(kind, 64)}
    return TASKS.validate({**sizes, **OPTIONS.get(kind, {})})


OTHERS = [
    *(
        {"kind": "coded_reversal", "codes": codes, "code_size": 6}
        for codes in ("noise", "shared_noise", "keys", "unmirrored_keys", "onset")
    ),
    *(
        {"kind": "longer_inputs", "min_length": 3, "tested_lengths": [6, 8], "codes": codes}
        for codes in (None, "onset")
    ),
    {"kind": "vocabulary_extension", "num_known": 2},
    {"kind": "zipf", "exponent": 0.5},
]
SIZES = {"vocab_size": 6, "length": 5, "num_held_out": 9}
every_sort = tasks() | st.sampled_from(
    [
        *(TASKS.validate({**SIZES, **other}) for other in OTHERS),
        *(TASKS.find("infinite_vocabulary")(dimension=d, length=d, num_held_out=9) for d in (2, 5)),
    ]
)


def space(kind, left):
    """Return a small task of which half, a twentieth, or all sequences but `left` are held out."""
    sizes, possible = SPACES[kind]
    if kind == "variable_length":
        possible = 256  # of the shortest
    number = {"half": possible // 2, "most": possible // 20}.get(left) or possible - left
    if kind == "dual_frequency":
        # All 16 sequences of one class are held out, at most.
        number = {"half": 3, "most": 1}.get(left, 4)
    return TASKS.find(kind)(**sizes, **held(kind, number))


def every_sequence(config):
    """List what may be drawn, and its probability."""
    ids = range(config.vocab_size)
    if config.kind == "dual_frequency":
        half = config.vocab_size // 2
        share = {False: (1 - config.rare_share) / half, True: config.rare_share / half}
        for row in itertools.product(ids, repeat=config.length):
            yield row, np.prod([share[token >= half] for token in row])
    else:
        lengths = range(config.min_length, config.length + 1)
        for length in lengths:
            filling = (config.vocab_size,) * (2 * config.length - length)
            for row in itertools.product(ids, repeat=length):
                yield row + filling, 1 / len(lengths) / config.vocab_size**length


def alike(config, row):
    """Return which test sequences are equally likely, and how many of them are possible."""
    match config.kind:
        case "variable_length":
            length = row.index(config.vocab_size)
            return length, config.vocab_size**length
        case "dual_frequency":
            half = config.vocab_size // 2
            return tuple(token >= half for token in row), half**config.length
    return None, SPACES[config.kind][1]


def changed(config, name):
    """Change one option, by as little as possible."""
    values = {"rare_share": 0.25, "rule": "sort", "tested_lengths": [10, 12], "codes": None}
    if config.kind == "coded_reversal":
        values["codes"] = "keys"
    step = 2 if config.kind == "dual_frequency" or name == "code_size" else 1
    return config.override({name: values[name] if name in values else getattr(config, name) + step})


seeds, steps = st.integers(0, 2**63 - 1), st.integers(0, 2**40)


def rows(batch):
    return {row.tobytes() for row in batch.tokens}
