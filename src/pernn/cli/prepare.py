"""`pernn prepare`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from pernn.corpora import (
    SHARE,
    SPLITS,
    EncodedCorpus,
    LanguageModellingConfig,
    keep_text,
    prepare,
    raw_folder,
)
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
    what: Annotated[
        str, typer.Argument(help="An experiment on a corpus, or a file of UTF-8 text.")
    ] = "language_modelling",
    scale: Scale = "paper",
    assignments: Assignments = None,
    name: Annotated[
        str | None,
        typer.Option(help="For a file: the name of the text; the default is the file's name."),
    ] = None,
    share: Annotated[
        float,
        typer.Option(help="For a file: share of the paragraphs for validation, and for the test."),
    ] = SHARE,
    characters: Annotated[
        bool, typer.Option("--characters", help="For a file: tokens are characters, not pieces.")
    ] = False,
) -> None:
    """Prepare the text of an experiment: train its tokeniser and encode it, once.

    A run does this itself when it has to; here you can do it beforehand, with a progress bar. Raw
    and prepared text lie in the folder that PERNN_DATA names (`data` if it is not set). If the text
    is missing, the message says how to get it.

    A file of your own is split into three parts, in order, and kept under a name that any run may
    then use.

    Examples: PERNN_DATA=~/corpora pernn prepare language_modelling --scale paper;
    pernn prepare mybook.txt; pernn run language_modelling --set task.corpus=mybook
    """
    file = Path(what)
    if file.suffix or file.is_file():
        _keep(file, name or file.stem.lower(), share, characters=characters)
        return
    specs = trials(find_experiment(what), scale, overrides(assignments))
    configs = (spec.task_under_preset for spec in specs)
    tasks = {config for config in configs if isinstance(config, LanguageModellingConfig)}
    if not tasks:
        raise ConfigError(f"{what}: its data are drawn, not read: there is nothing to prepare")
    for task in sorted(tasks, key=lambda task: task.name):
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn()) as progress:
            corpus = prepare(task, Stages(progress))
        for line in _describe(task, corpus):
            typer.echo(line)
        typer.echo(f"{task.name}: {corpus.folder}")


def _keep(file: Path, name: str, share: float, *, characters: bool) -> None:
    """Keep a text and tell how to use it."""
    unit: Literal["pieces", "characters"] = "characters" if characters else "pieces"
    config = keep_text(file, name, share=share, unit=unit)
    train, valid, test = config.paragraphs
    typer.echo(
        f"{name}: {sum(config.paragraphs):,} paragraphs kept in {raw_folder(name).absolute()}: "
        f"{train:,} to train, {valid:,} for validation, {test:,} for the test"
    )
    typer.echo(f"Use it:  pernn run language_modelling --set task.corpus={name}")
    task = trials(find_experiment("language_modelling"), "demo", {})[0].task
    if isinstance(task, LanguageModellingConfig):
        typer.echo(
            f"At scale demo, text is cut into {task.vocab_size} {unit}, of which the first "
            f"{task.length} of a paragraph are read; to change that: --set task.vocab_size=2048 "
            "--set task.length=256"
        )


def _describe(task: LanguageModellingConfig, corpus: EncodedCorpus) -> Iterator[str]:
    """Count what there is of each part, and what is cut off."""
    unit = "characters" if corpus.has_characters else "pieces"
    for split in SPLITS:
        lengths = corpus.lengths(split)
        cut = int((lengths > task.length).sum())
        yield (
            f"{split:>5}: {len(lengths):,} paragraphs of {int(lengths.sum()):,} {unit} "
            f"({corpus.vocab_size:,} distinct); {cut:,} are longer than the {task.length:,} that "
            "are read of each"
        )
