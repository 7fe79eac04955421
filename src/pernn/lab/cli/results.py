"""Verbs that read, judge, publish and prune results."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from typer import Argument, Option

from pernn.errors import ConfigError, StoreError, counted, one_line
from pernn.lab.config import grouped
from pernn.lab.experiments import experiment_names
from pernn.lab.lookup import find_plan, find_sweep, find_waiting, name_run
from pernn.lab.reports import export_curves, export_records, require_exportable
from pernn.lab.runners import num_cores
from pernn.lab.runs import StabilityAnalysis, delete_leftovers, find_leftovers, with_stages
from pernn.lab.store import (
    FOLDER,
    VARIABLE_OF_PLANS,
    check_writable,
    evidence_folder,
    list_publications,
    list_runs,
    load_sweep,
    plan_folders,
    where_published,
)
from pernn.lab.sweeps import make_report, plan_sweep, repeat_command, report_of
from pernn.lab.trials import find_published, gather
from pernn.lab.trials import publish as publish_sweep

from .options import (
    RESULTS,
    SWEEP,
    Additions,
    Assignments,
    Device,
    IgnorePublished,
    Jobs,
    Json,
    Results,
    Scale,
    Seeds,
    Threads,
    Yes,
    exit_status,
    grid_changes,
    left_out,
    print_json,
    warn,
)
from .terminal import print_rows, print_verdicts, tracked


def report(
    sweep: Annotated[str | None, SWEEP] = None,
    claims: bool = False,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
    every: Annotated[bool, Option("--all")] = False,
    output: Annotated[Path | None, Option("--out", "-o")] = None,
    jobs: Jobs = None,
) -> int:
    """Write figure, tables, verdicts and page of all finished trials.

    Published trials count as finished, also of an experiment that was never run here.

    Args:
        claims: Only print the verdicts on the paper's claims; write nothing.
        every: One page of all sweeps, with every claim of the study; of more than a hundred those
            that judge claims, and your own.
        output: With --all: the file; the default is RESULTS/study.html.
        jobs: With --all: processes that draw; the default is one per CPU core.

    Examples:
        pernn report vocabulary_size --scale demo
        pernn report vocabulary_size --claims
        pernn report --all --out study.html
    """
    published = None if ignore_published else evidence_folder()
    damage: list[str] = []
    if every:
        if sweep is not None or as_json or claims:
            raise ConfigError("--all takes no sweep, no --claims and no --json")
        if not results.is_dir() and not (published and list_publications(published)):
            where = where_published(published)
            raise ConfigError(
                f"no results in {results.absolute()}: start with `pernn run`; {where}"
            )
        from pernn.lab.evidence import make_study

        path, watch = output or results / "study.html", tracked("Drawing sweeps")
        check_writable(path)
        num_jobs = jobs or num_cores()
        make_study(results, path, damage.append, published, jobs=num_jobs, watch=watch)
        typer.echo(str(path))
        return left_out(damage)
    if sweep is None or output is not None or jobs is not None:
        raise ConfigError(
            "expected a sweep, or --all (and then --out FILE, --jobs N) for a page of all"
        )
    plan = find_plan(results, sweep, scale, published, warn)
    made = (report_of if claims else make_report)(results, plan, damage.append)
    if claims and as_json:
        print_json([verdict.dump() for verdict in made.verdicts])
    elif claims:
        print_verdicts(made.verdicts, brief=False)
    elif as_json:
        print_json(plan.summary(results, made))
    else:
        typer.echo("\n".join(map(str, made.paths)))
    return left_out(damage)


def compare(
    first: Annotated[str, Argument(metavar="A")],
    second: Annotated[str, Argument(metavar="B")],
    sweep: str | None = None,
    metric: Annotated[str | None, Option("--metric", "-m")] = None,
    until: Annotated[float | None, Option(metavar="LEVEL")] = None,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> int:
    """Compare two settings in pairs of trials that otherwise agree.

    A and B are conditions on settings (separated by commas), two sweeps or experiments, or two
    folders of results or of published trials. Conditions select from all trials finished here, or
    from those of --sweep, which include published ones; two folders that have trials in common are
    compared by these. For each cell, and for all together with the seed as the unit, the table has
    mean difference, Student's t interval, exact permutation test and effect size. With --until the
    table has how many times as many updates B takes as A, and how many trials never get there.

    Args:
        first: Conditions, a sweep or a folder.
        second: Likewise; the difference is A − B.
        sweep: Apply the conditions to this sweep or experiment only.
        metric: The default is the experiment's own.
        until: Compare by the updates until the training accuracy first reached this level.

    Examples:
        pernn compare encoding.kind=sinusoidal encoding.kind=none --sweep vocabulary_size
        pernn compare core.kind=gru,task.length=32 core.kind=lstm,task.length=32 --metric loss
        pernn compare training.precision=bf16 training.precision=fp32 --metric loss
        pernn compare encoding.kind=sinusoidal encoding.kind=none --sweep sorting-small --until 0.9
        pernn compare evidence other-machine/results
    """
    from pernn.lab.comparisons import compare as compare_trials

    damage: list[str] = []
    try:
        found = compare_trials(
            first,
            second,
            sweep=sweep,
            metric=metric,
            until=until,
            scale=scale,
            results=results,
            evidence=None if ignore_published else evidence_folder(),
            complain=warn,
            left_out=damage.append,
        )
    except ConfigError:
        left_out(damage)  # may be why
        raise
    if as_json:
        print_json(found.dump())
    else:
        typer.echo(one_line(found.title))
        print_rows(found.columns, found.rows)
        for note in found.notes:
            typer.echo(one_line(note))
    return left_out(damage)


def export(
    sweep: Annotated[str, SWEEP],
    output: Annotated[str, Option("--output", "-o")],
    table: Annotated[str | None, Option("--table", "-t")] = None,
    curves: bool = False,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
) -> int:
    """Write one flat record per finished trial: its spec and its metrics.

    Published trials of the sweep count as finished; their learning curves are thinned.

    With --table, one record per row of a table, for example by length or by position. With
    --curves, one record per logged line of training (kind train) and per test (kind test).

    Args:
        output: File: .csv, .json or .parquet decides the form.
        table: Write the rows of this table of each trial instead.
        curves: Write the learning curves instead: all lines of metrics, and the last test.

    Examples:
        pernn export vocabulary_size -o records.parquet
        pernn export variable_length --table by_length -o by_length.csv
        pernn export vocabulary_size --curves -o curves.csv
    """
    published = None if ignore_published else evidence_folder()
    damage: list[str] = []
    runs = find_sweep(results, sweep, scale, published, warn).runs
    require_exportable(output)
    if curves and table is not None:
        raise ConfigError("--curves and --table are two things: give one of them")
    found = find_published(published, runs, warn)
    trials = gather(results, runs, found, damage.append)
    what = f"{len(trials)} of {len(runs)} trials"
    if curves:
        num_rows = export_curves(trials, output)
    else:
        num_rows = export_records([one.row() for one in trials], output, table)
    what = f"{num_rows} rows of {what}" if table or curves else what
    typer.echo(f"{what} written to {output}")
    return left_out(damage)


def publish(
    sweeps: list[str],
    to: Path = Path(FOLDER),
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Add the finished trials of sweeps to the published ones.

    For an experiment, name the --scale, --set, --seeds and --add that it was run with. Repeating
    the command changes nothing. Every run is checked; damaged ones are reported and left out, with
    exit status 4. A trial that is published already with another result stays as it is.

    Args:
        sweeps: Sweeps (see `pernn status`) or experiments.
        to: Folder for published trials, one Parquet file per sweep.

    Example:
        pernn publish vocabulary_size dual_frequency --scale small --to evidence
    """
    changes, experiments = grid_changes(assignments, seeds, additions), experiment_names()
    if changes and not {*sweeps} <= {*experiments}:
        raise ConfigError(
            "--set, --seeds and --add concern experiments only: a sweep's name has its own"
        )
    found = {
        name: plan_sweep(name, scale, changes).sweep
        if name in experiments
        else load_sweep(results, name)
        for name in sweeps
    }
    made: dict[str, dict[str, Any]] = {}
    for name, sweep in found.items():
        one = publish_sweep(results, sweep, to)
        made[name] = {"path": str(one.path), "trials": one.fates, "left_out": one.left_out}
        count = Counter(one.fates.values())
        said = ", ".join(f"{number} {fate}" for fate, number in count.items()) or "nothing finished"
        if not as_json:
            typer.echo(one_line(f"{one.path}: {said}"))
        for run, fate in one.fates.items():
            if fate == "kept the first":
                warn(f"{name_run(results, run)} is published with another result: {fate}")
        for run, reason in one.left_out.items():
            warn(f"{name_run(results, run)} of {name} left out: {reason}")
    if as_json:
        print_json(made)
    return exit_status(StoreError) if any(one["left_out"] for one in made.values()) else 0


def register(plan: Path) -> None:
    """Write down what will be run and judged, before it is run.

    PLAN.lock.json beside it has a digest of every trial and claim, the rule of verdicts, the
    smallest effects that can be seen, the version and the date. Reports then call a verdict
    registered, or exploratory with all that departs from the plan.

    Args:
        plan: A TOML file; docs/sweeps.md has an example.

    Example:
        pernn register plans/mine.toml
    """
    from pernn.lab.registration import register as write_registration

    path, found = write_registration(plan)
    typer.echo(one_line(str(path)))
    for sweep, registered in found:
        seen = [one.seen for one in registered.claims.values() if one.seen is not None]
        range_ = f"{min(seen):.2g} to {max(seen):.2g}" if seen else "unknown"
        typer.echo(
            f"  {repeat_command(sweep.sweep)}\n  {counted(len(registered.runs), 'trial')}, "
            f"{counted(len(registered.claims), 'claim')}; smallest effects seen with 80 % power: "
            f"{range_} standard deviations over seeds"
        )
    if path.parent.resolve() not in [folder.resolve() for folder in plan_folders()]:
        folders = " and ".join(map(str, plan_folders()))
        warn(f"reports look for plans in {folders}: move it there, or set {VARIABLE_OF_PLANS}")


def cite(
    name: Annotated[str, Argument(metavar="RUN|EXPERIMENT")],
    scale: Scale = "demo",
    as_json: Json = False,
) -> None:
    """Print BibTeX of pernn and of a run's or an experiment's sources.

    These are the sources of its core, encoding, task and text; of an experiment also those of the
    statistics of its verdicts. A part of one's own has those that its `references` names.

    Args:
        name: A run's directory, or an experiment.

    Examples:
        pernn cite vocabulary_size > sources.bib
        pernn cite results/runs/0123456789abcdef
    """
    from pernn.lab.citing import cite, entries

    found, known = cite(name, scale), entries()
    # A part of another package may have keys of its own bibliography.
    keys = dict.fromkeys(key for some in found.values() for key in some)
    if as_json:
        print_json({"parts": found, "entries": {key: known.get(key) for key in keys}})
        return
    typer.echo("\n\n".join(known.get(key, f"% {key}: not in pernn's list") for key in keys))


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
        shown = map("{:.4f}".format, table["similarity"])
        by_update = grouped(zip(table["update"], shown, strict=True))
        typer.echo("Gradient similarity")
        columns = ["Update", *dict.fromkeys(table["condition"])]
        print_rows(columns, [(f"{update:,}", *row) for update, row in by_update.items()])
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
    table = tabulate_errors(found)
    none = ("not in the input", float(found.shares[0]), float(found.chances[0]))
    if as_json:
        counts = {"num_answers": found.num_answers, "num_wrong": found.num_wrong}
        print_json({**counts, **table, "no_token": none[1], "no_token_chance": none[2]})
        return
    typer.echo(f"{found.num_wrong:,} of {found.num_answers:,} answers are wrong.")
    rows = [
        (f"{counted(steps, 'step')} off", share, chance)
        for steps, share, chance in zip(*table.values(), strict=True)
    ]
    shown = [(name, f"{share:.3f}", f"{chance:.3f}") for name, share, chance in (*rows, none)]
    print_rows(["Token given", "Share", "By chance"], shown)
