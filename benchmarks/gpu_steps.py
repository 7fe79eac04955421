"""Plain against fused steps of a recurrence: the part `steps` of `benchmarks/gpu.py`."""

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pernn.training import Precision

FUSED = ("lstm", "gru")
"""Cores for which PyTorch has fused steps."""


def compare_steps(
    device: str, core: str, shape: tuple[int, int, int, int], precision: "Precision"
) -> dict[str, Any]:
    """Time updates with plain and with fused steps in turn, and what a run chooses by.

    `shape`: hidden size, batch size, length, vocabulary.
    """
    import torch

    from pernn.cores import has_fused_steps
    from pernn.performance import Stopwatch, make_spec
    from pernn.runs import build, choose_steps, measure_steps
    from pernn.training import TrainState

    spec, place = make_spec(core, shape, precision), torch.device(device)
    names = {"plain": False}
    row: dict[str, Any] = {"chosen": "plain"}
    if has_fused_steps(core, place):
        names["fused"] = True
        said: list[str] = []
        found = measure_steps(spec, place, said.append)
        row["chosen"] = "fused" if choose_steps(spec, place, said.append) else "plain"
        times = found["recurrence_seconds"]
        row |= {f"16 steps, {name} ms": times[name] * 1e3 for name in names}
        row |= {"difference": found["difference"], "agrees": found["agrees"]}
        row |= {"text": "\n".join(said)} if said else {}
    watches = {}
    for name, fused in names.items():
        trial = build(spec, place)
        state = TrainState.fresh(trial.model, trial.preset)
        watches[name] = Stopwatch(spec, trial, state, place, fused=fused)
    rounds = [{name: watch.whole() for name, watch in watches.items()} for _ in range(9)][2:]
    for name in names:
        median = statistics.median(taken[name] for taken in rounds)
        row[f"update, {name} ms"] = median * 1e3
    return row
