"""`pernn prepare`, `prune`, `sample`, `errors` and `analyze`: texts, and what runs hold."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from typer import Argument, Option

from pernn.errors import ConfigError, one_line
from pernn.lab.corpora import SHARE, LanguageModellingConfig, keep_text, raw_folder
from pernn.lab.experiments import find_experiment, trials
from pernn.lab.lookup import find_waiting, name_run
from pernn.lab.reports import export_records, require_exportable
from pernn.lab.runs import StabilityAnalysis, delete_leftovers, find_leftovers, with_stages
from pernn.lab.store import list_runs, load_sweep

from .options import (
    RESULTS,
    Assignments,
    Device,
    Json,
    Results,
    Scale,
    Threads,
    Yes,
    left_out,
    overrides,
    print_json,
    warn,
)
from .terminal import tracked


def prepare(
    what: Annotated[str, Argument()] = "language_modelling",
    scale: Scale = "paper",
    assignments: Assignments = None,
    name: str | None = None,
    share: float = SHARE,
    characters: bool = False,
) -> None:
    """Prepare the text of an experiment: its tokeniser and its ids.

    A run does this itself when it has to; here you can do it beforehand, with a progress bar. Raw
    and prepared text lie in the folder that PERNN_DATA names (`data` if it is not set). If the text
    is missing, the message says how to get it.

    A file of your own is split into three parts, in order, and kept under a name that any run may
    then use.

    Args:
        what: An experiment on a corpus, or a file of UTF-8 text.
        name: For a file: the name of the text; the default is the file's name.
        share: For a file: share of the paragraphs for validation, and for the test.
        characters: For a file: tokens are characters, not pieces.

    Examples:
        PERNN_DATA=~/corpora pernn prepare language_modelling --scale paper
        pernn prepare mybook.txt
        pernn run language_modelling --set task.corpus=mybook
    """
    file = Path(what)
    if file.suffix or file.is_file():
        if scale != "paper" or assignments:
            raise ConfigError(f"{what} is a file: --scale and --set are for experiments")
        _keep(file, name or file.stem.lower(), share, characters=characters)
        return
    if name is not None or share != SHARE or characters:
        raise ConfigError(f"{what} is no file: --name, --share and --characters are for files")
    specs = trials(find_experiment(what), scale, overrides(assignments))
    configs = (spec.task_under_preset for spec in specs)
    tasks = {config for config in configs if isinstance(config, LanguageModellingConfig)}
    if not tasks:
        raise ConfigError(f"{what}: its data are drawn, not read: there is nothing to prepare")
    for task in sorted(tasks, key=lambda task: task.name):
        _prepare(task)


def _prepare(task: LanguageModellingConfig) -> None:
    """Prepare a text and show a bar for each stage; that one has begun ends those before it."""
    from pernn.lab.corpora import prepare

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn()) as progress:
        bars: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                for bar in progress.tasks:
                    progress.update(bar.id, completed=bar.total or bar.completed)
                bars[stage] = progress.add_task(stage, total=None)
            progress.update(bars[stage], completed=done, total=total or None)

        corpus = prepare(task, show)
    typer.echo(f"{task.name}: {corpus.folder}")


def _keep(file: Path, name: str, share: float, *, characters: bool) -> None:
    """Keep a text and tell how to use it."""
    config = keep_text(file, name, share=share, unit="characters" if characters else "pieces")
    train, valid, test = config.paragraphs
    typer.echo(
        f"{name}: {sum(config.paragraphs):,} paragraphs kept in {raw_folder(name).absolute()}: "
        f"{train:,} to train, {valid:,} for validation, {test:,} for the test"
    )
    typer.echo(f"Use it:  pernn run language_modelling --set task.corpus={name}")


def prune(
    sweep: Annotated[str | None, Argument()] = None,
    all_checkpoints: bool = False,
    dry_run: bool = False,
    yes: Yes = False,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Delete checkpoints that finished trials no longer need.

    Unfinished trials, and checkpoints that they build on, stay untouched. By default, the last
    checkpoint of each trial and those of training.keep_interval stay too.

    Args:
        sweep: A sweep's name (see `pernn status`); the default is all runs.
        all_checkpoints: Also delete the last checkpoint and those of training.keep_interval.
        dry_run: Print what would be deleted.
        yes: Delete without asking.

    Example:
        pernn prune vocabulary_size-demo --dry-run
    """
    runs = with_stages(results, load_sweep(results, sweep).runs) if sweep else list_runs(results)
    damage: list[str] = []
    # What stays by default is all that trials of a sweep that cannot be read may build on.
    waiting = find_waiting(results, None if all_checkpoints else damage.append)
    found = list(find_leftovers(results, runs, waiting, all_checkpoints=all_checkpoints))
    skipped = {one.run: one.skipped for one in found if one.skipped}
    gone = [one for one in found if one.folders]
    if gone and not (dry_run or yes):
        if as_json or not sys.stdin.isatty():
            raise ConfigError("prune deletes checkpoints: say --yes to do it, --dry-run to look")
        size = decimal(sum(one.num_bytes for one in gone))
        typer.confirm(f"Delete {sum(len(one.folders) for one in gone)} ({size})?", abort=True)
    if not dry_run:
        refused = {one.run: delete_leftovers(results, one) for one in gone}
        skipped |= {run: reason for run, reason in refused.items() if reason}
        gone = [one for one in gone if one.run not in skipped]
    count, num_bytes = (sum(len(one.folders) for one in gone), sum(one.num_bytes for one in gone))
    if as_json:
        content = {"dry_run": dry_run, "num_checkpoints": count, "num_bytes": num_bytes}
        print_json({**content, "skipped": skipped})
    elif not gone:
        typer.echo(one_line(f"No checkpoints in {results} that are no longer needed."))
    else:
        done = "not deleted (--dry-run)" if dry_run else "deleted"
        typer.echo(f"{count:,} checkpoints of {len(gone):,} trials, {decimal(num_bytes)}: {done}")
    for run, reason in skipped.items():
        warn(f"{name_run(results, run)} left alone: {reason}")
    return left_out(damage) or int(bool(skipped))


def sample(
    run: Path,
    prompt: str = "",
    tokens: Annotated[int, Option(min=1)] = 100,
    temperature: Annotated[float, Option(min=0)] = 1.0,
    seed: Annotated[int, Option(min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Print text that a run's language model writes, with its newest checkpoint.

    Args:
        run: Directory of a run on language_modelling.
        prompt: How the text begins.
        tokens: Pieces to add.
        temperature: 0 takes the likeliest piece.
        seed: Of the draws.

    Example:
        pernn sample results/runs/0123456789abcdef --prompt "The" --tokens 50 --seed 1
    """
    # Only what computes loads torch.
    from pernn.lab.sampling import sample

    text = sample(run, prompt, num_tokens=tokens, temperature=temperature, seed=seed)
    if as_json:
        print_json({"prompt": prompt, "seed": seed, "temperature": temperature, "text": text})
    else:
        typer.echo(text)


def analyze(
    run: Path,
    pairs: Annotated[int, Option(min=1)] = 256,
    source_step: Annotated[int, Option(min=1)] = 1,
    map_pairs: Annotated[int, Option("--map", min=0)] = 0,
    output: Annotated[str | None, Option("--output", "-o")] = None,
    device: Device = "auto",
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Measure gradient stability at the checkpoints of a run, finished or not.

    Nothing is written into the run's directory. A run keeps its last two checkpoints; set
    training.keep_interval, a multiple of training.checkpoint_interval, to keep more.

    Args:
        run: Directory of a run, finished or not.
        pairs: Pairs of sequences per condition.
        source_step: Input step of the target; the paper's is 1, and 23 for S4D.
        map_pairs: Also map all steps, with this many pairs each.
        output: Write the rows to a .csv, .json or .parquet file.

    Example:
        pernn analyze results/runs/0123456789abcdef --pairs 16 -o stability.csv
    """
    if output is not None:
        require_exportable(output)
    # Only what computes loads torch.
    from pernn.lab.runs import analyse_run

    config = StabilityAnalysis(
        num_per_condition=pairs, source_step=source_step, map_per_condition=map_pairs
    )
    watch = tracked("Analysing checkpoints")
    tables = analyse_run(run, config, device=device, threads=threads, watch=watch)
    # Before the file: if that cannot be written, minutes of work are not lost.
    if as_json:
        print_json(tables)
    else:
        table = tables["gradient_stability"]
        shown = Table("Update", *dict.fromkeys(table["condition"]), title="Gradient similarity")
        by_update: dict[int, list[str]] = {}
        for update, value in zip(table["update"], table["similarity"], strict=True):
            by_update.setdefault(update, []).append(f"{value:.4f}")
        for update, values in by_update.items():
            shown.add_row(f"{update:,}", *values)
        Console().print(shown)
    if output is not None:
        rows = [
            {"table": name, **dict(zip(table, values, strict=True))}
            for name, table in tables.items()
            for values in zip(*table.values(), strict=True)
        ]
        export_records(rows, output)
        typer.echo(f"{len(rows)} rows written to {output}", err=as_json)


def errors(run: Path, device: Device = "auto", as_json: Json = False) -> None:
    """Show where in the input the wrong answers of a run stand.

    Each wrong answer to the held-out sequences is counted by how many steps its token is from the
    right one in the input; beside it is what other ids would give by chance. The newest checkpoint
    answers.

    Args:
        run: Directory of a run that reverses or copies.

    Example:
        pernn errors results/runs/0123456789abcdef
    """
    # Only what computes loads torch.
    from pernn.lab.runs import find_errors, tabulate_errors

    found = find_errors(run, device=device)
    table, none = tabulate_errors(found), (float(found.shares[0]), float(found.chances[0]))
    if as_json:
        counts = {"num_answers": found.num_answers, "num_wrong": found.num_wrong}
        print_json({**counts, **table, "no_token": none[0], "no_token_chance": none[1]})
        return
    title = f"{found.num_wrong:,} of {found.num_answers:,} answers are wrong"
    shown = Table("Token given", "Share", "By chance", title=title)
    rows = [
        (f"{steps} step{'s' * (steps > 1)} off", share, chance)
        for steps, share, chance in zip(*table.values(), strict=True)
    ]
    for name, share, chance in (*rows, ("not in the input", *none)):
        shown.add_row(name, f"{share:.3f}", f"{chance:.3f}")
    Console().print(shown)
