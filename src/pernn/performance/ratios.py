"""Ratios of a good script's time to ours, in a process whose environment stands for a processor."""

import json
import sys
import time
from typing import Any

import torch

from pernn.kernels import describe_arithmetic, describe_kernels
from pernn.runs import RunSpec
from pernn.training import keep_freed_memory

from .comparison import WARM_UP, make_update_of

ENOUGH_SECONDS = 2.0
MOST_ROUNDS = 41


def measure_ratios(spec: RunSpec, rounds: int) -> tuple[list[float], list[float]]:
    """Time our update and the good script's in turn.

    Args:
        spec: Reverse ordering of ids.
        rounds: How often at least; small updates are repeated for two seconds.

    Returns:
        The script's time over ours, and our seconds, for each round.
    """
    device = torch.device("cpu")
    ours, good = (make_update_of(name, spec, device)[0] for name in ("ours", "good"))
    for _ in range(WARM_UP):
        ours(), good()
    ratios: list[float] = []
    seconds: list[float] = []
    begun = time.perf_counter()
    while len(ratios) < rounds or (
        time.perf_counter() - begun < ENOUGH_SECONDS and len(ratios) < MOST_ROUNDS
    ):
        seconds.append(ours())
        ratios.append(good() / seconds[-1])
    return ratios, seconds


def main() -> None:
    """Read an order from the standard input; print what is used and each case's measurements."""
    order: dict[str, Any] = json.load(sys.stdin)
    keep_freed_memory()
    torch.set_num_threads(order["threads"])
    head = {"kernels": describe_kernels(), "arithmetic": describe_arithmetic()}
    print(json.dumps(head), flush=True)  # noqa: T201
    for content in order["specs"]:
        ratios, seconds = measure_ratios(RunSpec.load(content), order["rounds"])
        print(json.dumps({"ratios": ratios, "seconds": seconds}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
