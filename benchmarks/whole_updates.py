"""Whole updates against updates through autograd and a good script, in turn.

    python benchmarks/whole_updates.py [--rounds 25] [--threads 1] [--core lstm,gru,elman]
        [--shape 64,64,8,192] [--classes avx2,baseline]

Prints Markdown: medians of rounds, in each of which every way makes some updates in a row, as a
training does. One thread is timed by its own processor time, so that other work on the machine
disturbs little; more are timed by the clock. `--classes` measures on imitated processors, too.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from baselines import good_update
from processors import EMULATED
from updates import make_spec, read_shape

from pernn.kernels import describe_arithmetic, whole_updates
from pernn.lab.runs import RunSpec, build
from pernn.lab.training import TrainState, computing, keep_freed_memory, make_update

SHAPES = ((64, 64, 8, 192), (128, 64, 16, 256), (64, 128, 8, 256), (128, 64, 32, 32))
"""Hidden size, batch, length, vocabulary."""
CPU = torch.device("cpu")
AT_ONCE = 10
"""Updates of one way in a round, timed together after one that is not."""


def ours(spec: RunSpec, *, whole: bool) -> Callable[[], None]:
    """Return what makes our next update, data included."""
    trial = build(spec, CPU)
    state = TrainState.fresh(trial.model, trial.preset)
    update, size = make_update(state, spec.training, trial.preset, CPU), spec.training.batch_size

    def run() -> None:
        with whole_updates(enabled=whole):
            update(trial.stream.train(state.update, size))

    return run


def measure(spec: RunSpec, rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Return the seconds of each way's update, round by round."""
    runs: dict[str, Callable[[], object]] = {
        "autograd": ours(spec, whole=False),
        "whole": ours(spec, whole=True),
        "script": good_update(build(spec, CPU), spec.training.batch_size, CPU),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    with computing("fp32", CPU):
        for _ in range(rounds):
            for name, run in runs.items():
                run()
                begun = clock()
                for _ in range(AT_ONCE):
                    run()
                times[name].append((clock() - begun) / AT_ONCE)
    return times


def main() -> None:
    """Measure every core and shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", default="lstm,gru,elman")
    parser.add_argument("--shape", type=read_shape, action="append", metavar="H,B,L,K")
    parser.add_argument("--classes", default="", help="of processors.py, by commas")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    print(f"{describe_arithmetic()}, {options.threads} thread(s)\n")
    print("| | autograd, ms | whole, ms | (b) / autograd | (b) / whole |")
    print("|---|---|---|---|---|")
    for shape in options.shape or SHAPES:
        for core in options.core.split(","):
            spec = make_spec(core, shape)
            times = measure(spec, options.rounds, clock)
            before, after, _ = (1e3 * statistics.median(one) for one in times.values())
            ratios = [
                statistics.median(b / t for b, t in zip(times["script"], times[way], strict=True))
                for way in ("autograd", "whole")
            ]
            print(
                "| {} H {} B {} L {} K {}".format(core, *shape),
                f"| {before:.2f} | {after:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |",
                flush=True,
            )
    for name in filter(None, options.classes.split(",")):
        print(f"\n### {EMULATED[name].label}\n", flush=True)
        words = [word for word in sys.argv[1:] if word not in ("--classes", options.classes)]
        command = [sys.executable, __file__, *words]
        subprocess.run(command, env=EMULATED[name].environment(), check=True)


if __name__ == "__main__":
    main()
