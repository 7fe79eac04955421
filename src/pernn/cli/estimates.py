"""How long trials will take, estimated from their work and the machine's rates."""

from collections.abc import Sequence

from pernn.runs import Cost, RunSpec, estimate_cost, measure_bandwidth, measure_rate

from .options import num_cores


def estimate_hours(specs: Sequence[RunSpec], slots: int, threads: int) -> dict[str, float]:
    """Estimate hours on the CPU from the work and the machine's rates, without torch."""
    cost = sum(map(estimate_cost, specs), Cost(0, 0, 0))
    rate = measure_rate()
    share = min(1.0, slots * threads / num_cores())
    seconds = cost.seconds(rate * share, measure_bandwidth() * slots, slots)
    return {
        "estimated_hours": seconds / 3600,
        "operations": cost.operations,
        "measured_operations_per_second": rate,
    }


def show_hours(hours: float) -> str:
    """Say a time for people."""
    if hours < 1:
        return f"{hours * 60:.0f} minutes" if hours > 1 / 60 else "a minute or less"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
