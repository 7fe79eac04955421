"""A process that makes a few updates and says how much memory they needed.

What to do comes in as JSON on standard input.
"""

import json
import sys

import torch

from pernn.runs import RunSpec, peak_memory
from pernn.training import choose_device, keep_freed_memory

from .comparison import make_update_of

NUM_UPDATES = 3


def main() -> None:
    """Print mebibytes."""
    order = json.load(sys.stdin)
    keep_freed_memory()
    torch.set_num_threads(order["threads"])
    device = choose_device(order["device"])
    spec = RunSpec.load(order["spec"])
    small = spec.override({"training.batch_size": 1})
    run, _ = make_update_of(order["name"], small, device)
    run()  # what is loaded on the first call does not count
    before = peak_memory()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    run, _ = make_update_of(order["name"], spec, device)
    for _ in range(NUM_UPDATES):
        run()
    if device.type == "cuda":
        print(torch.cuda.max_memory_allocated(device) / 2**20)  # noqa: T201
    else:
        print((peak_memory() - before) / 2**20)  # noqa: T201


if __name__ == "__main__":
    main()
