"""The report of `benchmarks/gpu.py`: what was found, and which goals are reached."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Latest = Mapping[tuple[str, str], Mapping[str, Any]]
TITLES = {
    "doctor": "Machine",
    "rates": "Highest rates (operations and bytes a second)",
    "tests": "Tests that need a GPU",
    "parity": "Parity with the CPU: losses of 20 updates and of the evaluation, in nats",
    "steps": "Steps of the recurrence: ours in plain PyTorch, and PyTorch's fused cells",
    "times": "Updates: medians of interleaved rounds",
    "analysis": "Gradient analysis against vmap(jacrev)",
    "memory": "Most memory of an update",
    "training": "Shortened training at the paper's scale",
}
NOTES = {
    "times": "(a): the usual script; (b): a good script; both in float32, or TensorFloat-32 where "
    "ours is. The limit: the products at the highest rate that was measured. Layer alone: "
    "PyTorch's own layer (on a GPU cuDNN's), forward and back, without embedding, output layer and "
    "optimiser.",
}
GOALS: Sequence[tuple[str, str, str, str, Callable[[float], bool]]] = (
    (
        "at least 5 times (a), LSTM, K = 16,384, bf16",
        "times",
        "lstm K=16384 bf16",
        "(a) / ours",
        lambda ratio: ratio >= 5,
    ),
    (
        "at least 2.5 times (b), LSTM, K = 16,384, tf32",
        "times",
        "lstm K=16384 tf32",
        "(b) / ours",
        lambda ratio: ratio >= 2.5,
    ),
    (
        "300,000 updates of the LSTM, K = 16,384, in under 60 minutes",
        "training",
        "LSTM, sinusoidal, bf16",
        "minutes for 300,000",
        lambda minutes: minutes < 60,
    ),
    (
        "gradient analysis of an LSTM at least 5 times vmap(jacrev)",
        "analysis",
        "lstm 16 pairs",
        "ratio",
        lambda ratio: ratio >= 5,
    ),
)
"""What is to be reached, where it is found, and when it is."""


def write_report(folder: Path, latest: Latest) -> None:
    """Write `report.json` and `report.md`, each whole or not at all."""
    rows = [dict(record) for record in latest.values()]
    for name, text in (("report.json", json.dumps(rows, indent=1)), ("report.md", render(latest))):
        draft = folder / f".{name}"
        draft.write_text(text)
        draft.replace(folder / name)


def render(latest: Latest) -> str:
    """Return the report as Markdown."""
    blocks = ["# Report on a device", _goals(latest)]
    for part, title in TITLES.items():
        found = {name: one for (where, name), one in latest.items() if where == part}
        if found:
            blocks += [f"## {title}", *([NOTES[part]] if part in NOTES else []), *_part(found)]
    return "\n\n".join(blocks) + "\n"


def _goals(latest: Latest) -> str:
    on_gpu = any("capability" in one.get("result", {}) for one in latest.values())
    if not on_gpu:
        return "Not on a GPU: this only shows that the command works; its goals are for a GPU."
    rows = []
    for said, part, name, column, reached in GOALS:
        value = latest.get((part, name), {}).get("result", {}).get(column)
        verdict = "not measured" if value is None else "reached" if reached(value) else "missed"
        rows.append({"goal": said, "found": value, "": verdict})
    return table(rows)


def _part(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    good = {name: one["result"] for name, one in found.items() if "result" in one}
    blocks = []
    rows = [
        {"": name, **{key: value for key, value in result.items() if key != "text"}}
        for name, result in good.items()
    ]
    if any(len(row) > 1 for row in rows):
        blocks.append(table(rows))
    blocks += [
        f"```text\n{result['text'].rstrip()}\n```" for result in good.values() if "text" in result
    ]
    for name, one in found.items():
        if "failure" in one:
            blocks.append(f"**{name} failed** ({one['date']}):")
            blocks.append(f"```text\n{one['failure'].rstrip()[-3000:]}\n```")
    return blocks


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table; columns are all their keys, in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[_cell(row.get(column)) for column in columns] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
