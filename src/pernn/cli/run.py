"""`pernn run`."""

from typing import Annotated

import typer

from pernn.sweeps import plan_sweep

from .launch import Launch, with_launch
from .options import (
    RESULTS,
    Additions,
    Assignments,
    Json,
    Results,
    Scale,
    Seeds,
    Tune,
    grid_changes,
)
from .sweep import run_sweep


@with_launch()
def run(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment (see `pernn list`).")],
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    tuned: Tune = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Run the missing trials of an experiment, then write its report.

    Safe to interrupt and repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits. Several drivers may share one results directory.

    Examples: pernn run vocabulary_size --scale demo --jobs 2;
    pernn run vocabulary_size --seeds 10 --set 'task.vocab_size=[8,32]';
    pernn run vocabulary_size --seeds 111,222,666 --add core.kind=mingru:MinGRUConfig;
    pernn run vocabulary_size -s small --tune training.learning_rate=0.001:0.014:9;
    pernn run vocabulary_size -s small --set preset=as-written --time-limit 11:30:00;
    pernn run vocabulary_size -s paper --runner ray --gpus-per-trial 0.25
    """
    plan = plan_sweep(experiment, scale, grid_changes(assignments, seeds, additions, tuned))
    return run_sweep(plan, results, launch, as_json=as_json)
