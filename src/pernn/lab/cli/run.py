"""`pernn prepare`, `run`, `train`, `resume` and `pause`."""

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from typer import Argument, Option

from pernn.errors import ConfigError, StoreError, one_line, show_time
from pernn.lab.corpora import SHARE, LanguageModellingConfig, keep_text, raw_folder
from pernn.lab.experiments import SINGLE, find_experiment, trials
from pernn.lab.lookup import list_single_runs, reload_plan
from pernn.lab.runners import TrialEvent
from pernn.lab.runs import RunSpec, estimate, tell_apart
from pernn.lab.store import (
    RunDirectory,
    evidence_folder,
    in_words,
    is_done,
    list_sweeps,
    load_sweep,
    read_status,
    request_pause,
)
from pernn.lab.sweeps import Plan, plan_sweep, run_sweep

from .options import (
    LEFT_EARLY,
    RESULTS,
    Additions,
    Assignments,
    Json,
    Launch,
    Results,
    Scale,
    Seeds,
    failure_status,
    grid_changes,
    left_out,
    overrides,
    print_json,
    warn,
    where,
)

LONG_HOURS = 24.0
"""Work of more than this is begun only if somebody says so."""
OneTrial = Annotated[Launch, "threads", "device", "time_limit", "oversubscribe", "log_to"]


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
        name = name or file.stem.lower()
        config = keep_text(file, name, share=share, unit="characters" if characters else "pieces")
        train, valid, test = config.paragraphs
        corpus = f"task.corpus={in_words(name)}"
        typer.echo(
            f"{name}: {sum(config.paragraphs):,} paragraphs kept in {raw_folder(name).absolute()}: "
            f"{train:,} to train, {valid:,} for validation, {test:,} for the test\n"
            f"Use it:  pernn run language_modelling --set {shlex.quote(corpus)}"
        )
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

    with Progress() as progress:
        bars: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                for bar in progress.tasks:
                    progress.update(bar.id, completed=bar.total or bar.completed)
                bars[stage] = progress.add_task(stage, total=None)
            progress.update(bars[stage], completed=done, total=total or None)

        corpus = prepare(task, show)
    typer.echo(f"{task.name}: {corpus.folder}")


def run(
    experiment: str,
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    tuned: Annotated[str | None, Option("--tune", metavar="PATH=LOW:HIGH:N")] = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Run the missing trials of an experiment, then write its report.

    Safe to interrupt and repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits. Several drivers may share one results directory.

    Args:
        experiment: Name of an experiment (see `pernn list`).
        tuned: Choose a setting for each condition by validation seeds, among N values a factor
            apart and further ones beyond an end, then run the seeds at the chosen values, e.g.
            training.learning_rate=0.001:0.014:9.

    Examples:
        pernn run vocabulary_size --scale demo --jobs 2
        pernn run vocabulary_size --seeds 10 --set 'task.vocab_size=[8,32]'
        pernn run vocabulary_size --seeds 111,222,666 --add core.kind=mingru:MinGRUConfig
        pernn run vocabulary_size -s small --tune training.learning_rate=0.001:0.014:9
        pernn run vocabulary_size -s small --set preset=as-written --time-limit 11:30:00
        pernn run vocabulary_size -s paper --runner ray --gpus-per-trial 0.25
    """
    plan = plan_sweep(experiment, scale, grid_changes(assignments, seeds, additions, tuned))
    return carry_out(plan, results, launch, as_json=as_json)


def resume(
    sweep: Annotated[str | None, Argument()] = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Resume sweeps, and trials of `pernn train`, that were interrupted or paused.

    --time-limit holds for all sweeps together, --max-trials for each. After a sweep that stops
    early, no other is started.

    Args:
        sweep: A sweep (see `pernn status`), or `train` for those of `pernn train`; the default is
            all.

    Example:
        pernn resume vocabulary_size-demo --time-limit 55m
    """
    names = [sweep] if sweep else list_sweeps(results)
    if not sweep and not all(is_done(results, run) for run in list_single_runs(results)):
        names.append(SINGLE)
    if not names:
        typer.echo(
            one_line(f"No sweeps in {results.absolute()}: start one with `pernn run`."), err=True
        )
    status, summaries = 0, list[object]()
    tell = print_json if sweep else summaries.append
    for name in names:
        damage: list[str] = []
        try:
            plan = reload_plan(results, name, damage.append)
            left = left_out(damage)
            status = max(status, left, carry_out(plan, results, launch, as_json=as_json, tell=tell))
        except (ConfigError, StoreError) as error:
            if sweep:
                raise
            status = max(status, left_out([f"sweep {name}: {error}"]))
        if status == LEFT_EARLY:
            break
    if as_json and not sweep:
        print_json(summaries)
    return status


def pause(sweep: str, results: Results = RESULTS) -> None:
    """Have every driver of a sweep checkpoint its trials and leave.

    `pernn resume` goes on. Until a driver has left, `pernn status` shows its trials as running.

    Args:
        sweep: A sweep's name, see `pernn status`.

    Example:
        pernn pause vocabulary_size-demo
    """
    found = load_sweep(results, sweep)
    request_pause(results, sweep)
    running = sum(read_status(results, run).state == "running" for run in found.runs)
    again = f"pernn resume {sweep}{where(results)}"
    typer.echo(f"Asked for a pause of {running} running trials; go on: {again}")


def train(
    spec: Path,
    assignments: Assignments = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: OneTrial,
) -> int:
    """Train one trial from a file, or resume it.

    `pernn status train`, `pernn report train` and `pernn export train` cover all such trials.

    Args:
        spec: TOML or JSON file; a run's spec.json is one.

    Example:
        pernn train trial.toml --set seed=222
    """
    one = RunSpec.read(spec).override(overrides(assignments))
    runner = launch.make_runner()
    launch.check_machine([one])
    with showing([one], results, Console(stderr=True)) as tally:
        runner.run([one], results, tally)
    directory, ended = RunDirectory(results, one.fingerprint()), tally.ended.values()
    if failures := [event for event in ended if event.state == "failed"]:
        warn(f"failed: {failures[0].message}")
        return failure_status(failures)
    result = directory.read_result()
    if result is None:
        warn(f"stopped: {runner.limits.reason}; the same command goes on")
        return LEFT_EARLY
    if as_json:
        print_json({"directory": str(directory.path), **result})
        return 0
    for name, value in result["metrics"].items():
        typer.echo(f"{name:28} {value:.6g}")
    typer.echo(f"{'parameters':28} {result['num_parameters']:,}")
    typer.echo(f"Run directory: {directory.path}")
    return 0


def carry_out(
    plan: Plan,
    root: Path,
    launch: Launch,
    *,
    as_json: bool,
    tell: Callable[[object], None] = print_json,
) -> int:
    """Run a sweep, tell its report, and return the exit status."""
    # Messages go to standard error when standard output is for a script.
    console, say = Console(stderr=as_json), partial(typer.echo, err=as_json)
    found = run_sweep(
        plan,
        root,
        launch.make_runner(),
        evidence=None if launch.ignore_published else evidence_folder(),
        watch=lambda specs: showing(specs, root, console),
        prepare=lambda specs, more: _check(specs, root, launch, say, more),
        say=say,
        on_warning=warn,
        anew=as_json,
    )
    if as_json and found.report is not None:
        tell(found.plan.summary(root, found.report))
    else:
        if found.verdicts:
            from .terminal import print_verdicts

            print_verdicts(found.verdicts, brief=True)
        say(one_line(f"Report: {found.page}"))
    if found.stopped:
        plan = found.plan
        finished = sum(plan.is_finished(root, run) for run in plan.specs)
        warn(
            f"stopped: {found.stopped}; {finished} of {len(plan.specs)} trials are finished; "
            f"to go on: pernn resume {found.name}{where(root)}"
        )
    lost = left_out(found.damage)
    # That work is left comes first: a queue starts the command again.
    return LEFT_EARLY if found.stopped else failure_status(found.failures) or lost


def _check(
    specs: Sequence[RunSpec], root: Path, launch: Launch, say: Callable[[str], None], more: int
) -> None:
    """Refuse what this machine lacks or what does not fit; ask before more than a day."""
    launch.check_machine(specs)
    if launch.force or not launch.is_here:
        return
    say("Timing a few updates of each kind of trial …")
    found = estimate(
        specs,
        root,
        jobs=launch.jobs_here,
        threads=launch.threads,
        device=launch.device,
        to_come=more,
    )
    say(f"Needs {found.describe()}")
    found.check()
    limited = launch.time_limit is not None or launch.max_trials is not None
    if launch.yes or limited or found.hours is None or found.hours[0] <= LONG_HOURS:
        return
    time = f"at least {show_time(3600 * found.hours[0])}"
    if not sys.stdin.isatty():
        raise ConfigError(
            f"this takes {time}: say --yes to begin, or limit it with --time-limit or --max-trials"
        )
    typer.confirm(f"This takes {time}. Begin?", abort=True)


class Tally:
    """Count of trials' events, shown as bars, or as lines without them."""

    def __init__(self, specs: Sequence[RunSpec], root: Path, progress: Progress) -> None:
        self.specs = {spec.fingerprint(): spec for spec in specs}
        self.labels = tell_apart(self.specs)
        self.updates = {run: read_status(root, run).update for run in self.specs}
        self.ended: dict[str, TrialEvent] = {}
        self.progress = progress
        self.bars: dict[str, TaskID] = {}
        total, done = sum(spec.num_updates for spec in specs), sum(self.updates.values())
        label = f"[bold]all {len(specs)} trials"
        self.all = progress.add_task(label, total=total, completed=done, left="")

    def __call__(self, event: TrialEvent) -> None:
        """Take note of an event and show it."""
        run, spec, label = event.run, self.specs[event.run], self.labels[event.run]
        update = spec.num_updates if event.state == "finished" else event.update
        self.updates[run] = max(self.updates[run], update)
        self.progress.update(self.all, completed=sum(self.updates.values()))
        seconds = self.progress.tasks[0].time_remaining
        left = "" if event.state == "stopped" else show_time(seconds)
        self.progress.update(self.all, left=left)
        if event.is_end:
            self.ended[run] = event
            if run in self.bars:
                self.progress.remove_task(self.bars.pop(run))
        elif not event.elsewhere:
            if run not in self.bars:
                self.bars[run] = self.progress.add_task(label, total=spec.num_updates, left="")
            self.progress.update(self.bars[run], completed=self.updates[run])
        if event.is_warning:
            typer.echo(f"warning: {label}: {event.message}", err=True)
        elif event.message or (self.progress.disable and (event.is_end or event.elsewhere)):
            reason = f": {event.message}" if event.message else ""
            count = f"[{len(self.ended)}/{len(self.specs)}]"
            left = left and f", {left} left"
            typer.echo(f"{count} {event.state}: {label}{reason}{left}", err=True)


@contextmanager
def showing(specs: Sequence[RunSpec], root: Path, console: Console) -> Iterator[Tally]:
    """Show progress while the block runs, of events that it is given."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(
        *columns,
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=math.inf,  # the time left is that at the pace since the beginning
    )
    with progress:
        yield Tally(specs, root, progress)
