"""Count the updates that processes on one GPU make together.

    python benchmarks/sharing.py [--jobs 1,2,4,8] [--seconds 4] [--device cpu]

Without NVIDIA's multi-process service (`nvidia-cuda-mps-control -d`; `echo quit |
nvidia-cuda-mps-control` ends it) they take turns. All begin when all are ready.
Prints Markdown: a row per shape, a column per number of processes.
"""

import argparse
import subprocess
import sys
import time

import torch
from updates import make_spec, make_update_of

from pernn.lab.training import Precision, now

SHAPES: dict[str, tuple[tuple[str, tuple[int, int, int, int], Precision], ...]] = {
    "cuda": (
        ("lstm", (64, 64, 8, 192), "fp32"),
        ("lstm", (512, 512, 16, 256), "tf32"),
        ("gru", (512, 512, 64, 256), "tf32"),
    ),
    "cpu": (("lstm", (64, 64, 8, 192), "fp32"),),
}
BLOCK = 20
"""Updates between two looks at the clock."""


def work(device: torch.device, number: int, seconds: float) -> None:
    """Print a line when ready; wait for one, make updates, print how many a second."""
    torch.set_num_threads(1)
    core, shape, precision = SHAPES[device.type][number]
    run = make_update_of("ours", make_spec(core, shape, precision), device)
    for _ in range(BLOCK):
        run()
    now(device)
    print("ready", flush=True)
    sys.stdin.readline()
    begun, count = time.perf_counter(), 0
    while now(device) - begun < seconds:
        for _ in range(BLOCK):
            run()
        count += BLOCK
    print(count / (now(device) - begun), flush=True)


def together(device: str, number: int, jobs: int, seconds: float) -> float:
    """Return updates a second of all processes."""
    words = [sys.executable, __file__, "--device", device, "--seconds", str(seconds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [
        subprocess.Popen([*words, "--shape", str(number)], text=True, **pipes)  # type: ignore[call-overload]
        for _ in range(jobs)
    ]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("begin\n")
        child.stdin.flush()
    return sum(float(child.communicate()[0]) for child in children)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=list(SHAPES))
    parser.add_argument("--jobs", default="1,2,4,8")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--shape", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shape is not None:
        work(torch.device(options.device), options.shape, options.seconds)
        return
    counts = [int(word) for word in options.jobs.split(",")]
    head = ["hidden, batch, length, vocabulary", "core", *map(str, counts)]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for number, (core, shape, precision) in enumerate(SHAPES[options.device]):
        rates = [together(options.device, number, jobs, options.seconds) for jobs in counts]
        cells = [", ".join(map(str, shape)), f"{core} {precision}", *(f"{r:.0f}" for r in rates)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
