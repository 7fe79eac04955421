"""What cannot be analysed is refused by name."""

import numpy as np
import torch

from analysis.test_jacobians import VECTORS, Decay
from analysis.test_memory import onion, vectors
from pernn.analysis import (
    Pairs,
    compare_jacobians,
    gradient_noise,
    input_gradients,
    jacobian,
    lead,
    recall_errors,
)  # fmt: skip
from pernn.cores import LSTM, MinGRU
from pernn.lab import tasks
from pernn.lab.pairing import dual_frequency_pairs
from refusals import refusals

CORE, SCAN = LSTM(3, 5).double(), MinGRU(3, 5).double()
GATES, IDS = CORE.project(VECTORS).detach(), np.arange(8).reshape(2, 4)
BLIND = onion(1.0)
BLIND.project = lambda inputs, **_: inputs


def compared(*steps, second=GATES):
    return compare_jacobians(CORE, GATES, second, *steps)


def paired(kind, source=1, **options):
    return dual_frequency_pairs(
        getattr(tasks, f"{kind}Config")(**options).build(), 1, source=source
    )


def pairs(second=IDS, target=8):
    alike = {"conditions": (("all", "all"),), "condition": np.zeros(2, np.int64)}
    return Pairs(first=IDS, second=second, num_queries=4, source=1, target=target, **alike)


def recalled(inputs, targets):
    return recall_errors(np.array(inputs), np.array(targets), np.full(np.shape(targets), 3), 8)


def silently(call, *arguments):
    with torch.inference_mode():
        call(*arguments)


UNORDERED = "the source before the target"
OTHERS = "does not depend on the other tokens"
test_what_cannot_be_analysed_is_refused = refusals(
    (lambda: gradient_noise(torch.ones(1, 3), 4), "at least 2 batches, got 1"),
    (lambda: lead(np.ones(3), np.ones(3)), "at least 4 times, got 3"),
    *(
        (lambda way=way, steps=steps: way(*steps), UNORDERED)
        for steps in ((0, 3), (3, 3), (4, 3), (1, 10), (1000, 1))
        for way in (lambda *steps: jacobian(CORE, GATES, *steps), compared)
    ),
    (lambda: jacobian(CORE, GATES[:0], 1, 2), "at least one sequence"),
    (lambda: compared(1, 3).similarity("cosine"), "no similarity 'cosine'"),
    (lambda: compared(1, 3, second=GATES[:1]), "equally many sequences"),
    (
        lambda: jacobian(Decay(), torch.randn(1, 40, 2), 1, 40),
        "vanish in float32, and Decay does not run in float64",
    ),
    (lambda: silently(jacobian, SCAN, SCAN.project(VECTORS), 1, 3), r"use torch\.no_grad"),
    (lambda: silently(input_gradients, BLIND, vectors()), r"use torch\.no_grad"),
    (lambda: input_gradients(BLIND, vectors(), width=1), "first 1 features alone"),
    (lambda: paired("VariableLength"), "one length"),
    (lambda: paired("Autoregressive"), "without feedback"),
    (lambda: paired("Sorting"), OTHERS),
    (lambda: paired("PredecessorQuery"), OTHERS),
    (lambda: paired("ReverseOrdering", 9, length=8), "1 … 8"),
    (lambda: paired("ReverseOrdering", 0, length=8), "1 … 8"),
    (lambda: paired("DelayedAddition", 5, length=4), "1 … 4"),
    (lambda: pairs(target=9), "before the target"),
    (lambda: pairs(IDS + 1), "share their first 1"),
    (lambda: recalled([[5, 6, 7], [1, 2, 3]], np.full((2, 3), -100)), "nothing is asked for"),
    (lambda: recalled([[5, 1, 2, 3, 5]], [[5, 3, 2, 1, 5]]), "1 sequences do not tell which step"),
    (
        lambda: recalled([[3, 1, 2], [1, 2, 3]], [[1, 2, 3], [1, 2, 3]]),
        "each from the same step in every sequence",
    ),
)
