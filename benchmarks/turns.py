"""Time alternatives in turn, so that a drift of the machine touches all alike; print the table."""

import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def time_in_turns(
    runs: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float],
    block_seconds: float = 0.0,
) -> dict[str, list[float]]:
    """Return the seconds that each function takes in every round.

    The clock waits until all work is done. A turn has as many runs as take `block_seconds`.
    """
    numbers = {}
    for name, run in runs.items():
        run()  # what is set up on the first call does not count
        begun = clock()
        run()
        numbers[name] = max(1, round(block_seconds / (clock() - begun)))
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begun = clock()
            for _ in range(numbers[name]):
                run()
            times[name].append((clock() - begun) / numbers[name])
    return times


def call_apart(function: Callable[..., Any], *words: object) -> Any:
    """Return what a function returns in a fresh process, whose memory is its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *words).result()


def print_table(rows: Iterable[Mapping[str, str | float]]) -> None:
    """Print Markdown, each row as soon as it comes, with a head where columns change."""
    columns: list[str] = []
    for row in rows:
        if list(row) != columns:
            columns = list(row)
            print(f"\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
        cells = (one if isinstance(one, str) else f"{one:.3g}" for one in row.values())
        print(f"| {' | '.join(cells)} |", flush=True)
