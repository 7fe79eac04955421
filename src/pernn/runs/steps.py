"""Whether a recurrence on a GPU takes PyTorch's fused steps: where they agree and are faster.

Measured at first for each core, shape, precision, GPU and version, and remembered with the other
measurements (`estimates`). A run notes which it began with and goes on so.
"""

import hashlib
import json
import platform
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from pernn.cores import fused_steps, has_fused_steps
from pernn.errors import MachineError
from pernn.store import RunDirectory
from pernn.training import computing, cuda_graph, now, ran_out_of_memory, rounding

from .spec import RunSpec

NUM_STEPS = 16
"""Steps of the recurrence that is measured: a step takes as long in a longer one."""
ROUNDS, REPEATS = 5, 10
GAIN = 1.05
"""How much faster fused steps must be: a tie would be decided by chance."""
TOLERANCE = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 1e-2}
"""Largest norm of a difference over that of our result: some roundings of the precision's products.
A gate in another's place makes it about 1."""
FIELD = "recurrence_seconds"
"""What marks these measurements among the others."""


def choose_steps(
    spec: RunSpec, device: torch.device, warn: Callable[[str], None] = warnings.warn
) -> bool:
    """Return whether a spec's recurrence is to take fused steps on a device.

    Without fused cells there, as on every CPU, it takes plain ones; so it does where there is too
    little memory to measure.

    Args:
        spec: Its core, batch and precision count.
        device: Where.
        warn: Told in one line if fused steps are there and wrong.
    """
    if not has_fused_steps(spec.core.kind, device):
        return False
    try:
        found = _find(spec, device, warn)
    except RuntimeError as error:
        if not ran_out_of_memory(error):
            raise
        return False
    return bool(found["agrees"]) and found[FIELD]["plain"] > GAIN * found[FIELD]["fused"]


def steps_of(
    spec: RunSpec,
    started: Mapping[str, Any] | None,
    run: RunDirectory,
    device: torch.device,
    warn: Callable[[str], None],
) -> AbstractContextManager[None]:
    """Go on with the steps that a run began with, and choose those of a new one.

    Raises:
        MachineError: If it began with fused steps, and here they are missing or wrong.
    """
    if started is None:
        return fused_steps(enabled=spec.analysis is None and choose_steps(spec, device, warn))
    fused = started.get("steps") == "fused"
    if fused and not (
        has_fused_steps(spec.core.kind, device) and _find(spec, device, warn)["agrees"]
    ):
        raise MachineError(
            f"{run.path}: this run began with PyTorch's fused steps, which are missing or wrong "
            "here: resume it with the GPU and the PyTorch that it began with, or delete the "
            "directory"
        )
    return fused_steps(enabled=fused)


def _find(spec: RunSpec, device: torch.device, warn: Callable[[str], None]) -> Mapping[str, Any]:
    """Return what is known of a spec's steps here; measure it if nothing is."""
    from .estimates import describe_code, read_known, remember

    training = spec.training
    shape = [spec.core.kind, spec.core.hidden_size, _batch(spec), training.precision]
    where = [platform.node(), _name(device), torch.version.cuda, describe_code()]
    key = hashlib.sha256(json.dumps(["steps", shape, where]).encode()).hexdigest()[:16]
    known = read_known(FIELD)
    if key not in known:
        found = measure_steps(spec, device, warn)
        if device.type == "cuda":
            torch.cuda.empty_cache()  # else the memory of both recordings stays with this process
        # Another process may have been quicker, and runs may have begun with what it found.
        known = {key: found, **read_known(FIELD)}
        remember({key: known[key]})
    return cast(Mapping[str, Any], known[key])


def measure_steps(
    spec: RunSpec, device: torch.device, warn: Callable[[str], None] = warnings.warn
) -> dict[str, Any]:
    """Run a short recurrence forward and back with plain and with fused steps, in turn.

    Values are random, the same each time; on CUDA each is recorded as a graph, as updates are.

    Args:
        spec: Its core, batch and precision count.
        device: Where; it has fused cells.
        warn: Told in one line if the results differ.

    Returns:
        `agrees`; the largest `difference` (relative, by norm; `None` if it is no number); and
        `recurrence_seconds`, the median times: `plain` and `fused`.
    """
    limit = TOLERANCE[spec.training.precision]
    times: dict[bool, list[float]] = {False: [], True: []}
    difference, reason = float("nan"), ""
    with computing(spec.training.precision, device):
        run = _recurrence(spec, device)
        results: dict[bool, list[Tensor]] = {}

        def compute(fused: bool) -> None:  # noqa: FBT001
            results[fused] = run(fused)

        try:
            repeats = {way: _repeatable(partial(compute, way), device) for way in times}
            for way in [*times] * ROUNDS:
                begun = now(device)
                for _ in range(REPEATS):
                    repeats[way]()
                times[way].append((now(device) - begun) / REPEATS)
            difference = _difference(results[True], results[False])
            reason = f"differ from ours by {difference:.2g} (at most {limit:g})"
        except RuntimeError as error:
            if ran_out_of_memory(error):
                raise
            reason = f"fail ({str(error).splitlines()[0]})"
    agrees = difference <= limit
    if not agrees:
        warn(
            f"PyTorch's fused steps of {spec.core.kind} on {_name(device)} {reason}: ours are "
            "used; please report it"
        )
    plain, fused = (statistics.median(times[way] or [0.0]) for way in times)
    return {
        "agrees": agrees,
        "difference": difference if abs(difference) < float("inf") else None,
        FIELD: {"plain": plain, "fused": fused},
    }


def _recurrence(spec: RunSpec, device: torch.device) -> Callable[[bool], list[Tensor]]:
    """Return what runs one layer, with fused steps or without: states, then all gradients."""
    generator = torch.Generator().manual_seed(0)
    size, batch, precision = spec.core.hidden_size, _batch(spec), spec.training.precision
    config = spec.core.model_copy(update={"num_layers": 1})
    core: Any = cast(torch.nn.Module, config.build(size, generator)).to(device)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device).requires_grad_()

    gates = draw(batch, NUM_STEPS, core.gate_size)
    state = tuple(draw(1, batch, size) for _ in range(core.num_states))
    arriving = [draw(batch, NUM_STEPS, size).detach(), *(part.detach() for part in state)]
    leaves = [gates, *state, *core.parameters()]

    def run(fused: bool) -> list[Tensor]:  # noqa: FBT001
        with fused_steps(enabled=fused), rounding(precision, device):
            outputs, final = core.recur(gates, state)
        made = [outputs, *(final if isinstance(final, tuple) else (final,))]
        found = torch.autograd.grad(made, leaves, arriving, allow_unused=True)
        gradients = cast(Sequence[Tensor | None], found)
        return [*(one.detach() for one in made), *(one for one in gradients if one is not None)]

    return run


def _repeatable(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return cuda_graph(run)
    run()
    return run


def _difference(found: list[Tensor], expected: list[Tensor]) -> float:
    norm = torch.linalg.vector_norm
    pairs = zip(found, expected, strict=True)
    return float(torch.stack([norm(one - other) / norm(other) for one, other in pairs]).max())


def _batch(spec: RunSpec) -> int:
    return spec.training.micro_batch or spec.training.batch_size


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
