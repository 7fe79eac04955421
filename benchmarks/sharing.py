"""Count the updates that processes on one GPU make together.

    python benchmarks/sharing.py [--jobs 1,2,4,8] [--seconds 4] [--device cpu]

Without NVIDIA's multi-process service (`nvidia-cuda-mps-control -d`; `echo quit |
nvidia-cuda-mps-control` ends it) they take turns. All begin when all are ready.
Prints Markdown: a row per shape, a column per number of processes.
"""

import multiprocessing
import time
from threading import Barrier

import torch
import typer
from turns import print_table
from updates import Shape, make_spec, make_update_of

from pernn.lab.training import Precision, now

SHAPES: dict[str, tuple[tuple[str, Shape, Precision], ...]] = {
    "cuda": (
        ("lstm", (64, 64, 8, 192), "fp32"),
        ("lstm", (512, 512, 16, 256), "tf32"),
        ("gru", (512, 512, 64, 256), "tf32"),
    ),
    "cpu": (("lstm", (64, 64, 8, 192), "fp32"),),
}
BLOCK = 20
"""Updates between two looks at the clock."""


def work(device: torch.device, number: int, seconds: float, start: Barrier) -> float:
    """Make updates from when all are ready; return how many a second."""
    torch.set_num_threads(1)
    run = make_update_of("ours", make_spec(*SHAPES[device.type][number]), device)
    for _ in range(BLOCK):
        run()
    now(device)
    start.wait()
    begun, count = time.perf_counter(), 0
    while now(device) - begun < seconds:
        for _ in range(BLOCK):
            run()
        count += BLOCK
    return count / (now(device) - begun)


def together(jobs: int, device: torch.device, number: int, seconds: float) -> float:
    """Return updates a second of all processes."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(jobs) as pool:
        words = device, number, seconds, manager.Barrier(jobs)
        return sum(pool.starmap(work, [words] * jobs, chunksize=1))


def main(device: str = "cuda", jobs: str = "1,2,4,8", seconds: float = 4.0) -> None:
    """Count the updates that processes on one GPU make together."""
    on = torch.device(device)
    print_table(
        {"hidden, batch, length, vocabulary": ", ".join(map(str, shape))}
        | {"core": f"{core} {precision}"}
        | {one: f"{together(int(one), on, number, seconds):.0f}" for one in jobs.split(",")}
        for number, (core, shape, precision) in enumerate(SHAPES[device])
    )


if __name__ == "__main__":
    typer.run(main)
