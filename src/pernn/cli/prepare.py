"""`pernn prepare`."""

from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from pernn.corpora import LanguageModellingConfig, prepare
from pernn.errors import ConfigError
from pernn.experiments import find_experiment, trials

from .options import Assignments, Scale, overrides


class Stages:
    """A bar for each stage of a preparation."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.bars: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is; that it has begun means that those before it are done."""
        if stage not in self.bars:
            for bar in self.progress.tasks:
                self.progress.update(bar.id, completed=bar.total or bar.completed)
            self.bars[stage] = self.progress.add_task(stage, total=None)
        self.progress.update(self.bars[stage], completed=done, total=total or None)


def prepare_data(
    name: Annotated[
        str, typer.Argument(help="Name of an experiment on a corpus.")
    ] = "language_modelling",
    scale: Scale = "paper",
    assignments: Assignments = None,
) -> None:
    """Prepare the text of an experiment: train its pieces and encode it, once.

    A run does the same when it needs to; here it can be done beforehand, with a progress bar. Raw
    text is read from, and prepared text written to, the folder that PERNN_DATA names (`data` if it
    is not set). If text is missing, the message says how to get it.

    Example: PERNN_DATA=~/corpora pernn prepare language_modelling --scale paper
    """
    specs = trials(find_experiment(name), scale, overrides(assignments))
    configs = (spec.task_under_preset for spec in specs)
    tasks = {config for config in configs if isinstance(config, LanguageModellingConfig)}
    if not tasks:
        raise ConfigError(f"{name}: its data are drawn, not read: there is nothing to prepare")
    for task in sorted(tasks, key=lambda task: task.name):
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn()) as progress:
            corpus = prepare(task, Stages(progress))
        typer.echo(f"{task.name}: {corpus.folder}")
