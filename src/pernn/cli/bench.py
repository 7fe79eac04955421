"""`pernn bench`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pernn.errors import counted

from .options import Assignments, Device, Json, num_cores, overrides, print_json

if TYPE_CHECKING:
    from pernn.performance import Case, Ceilings, Comparison

CLASS_SHAPES = ["512,64,64,256", "512,128,16,1024", "128,64,32,32", "64,128,8,256"]
BOUNDS = {
    "registers": "on registers alone, which no product exceeds",
    "library": "the library's product, not a bound",
}


Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="H,B,L,K",
        help="Hidden size, batch size, length, vocabulary size; may be repeated. "
        "The default is those of docs/performance.md.",
    ),
]
Spec = Annotated[
    Path | None,
    typer.Argument(help="TOML or JSON file of a reverse_ordering trial; otherwise --shape."),
]
Classes = Annotated[
    bool,
    typer.Option(
        "--classes",
        help="Measure (b) / ours per class of processor (AMX, AVX-512, AVX2, no compiler), "
        "each imitated in a process of its own; prints Markdown.",
    ),
]


def bench(
    spec: Spec = None,
    shapes: Shapes = None,
    cores: Annotated[
        str, typer.Option("--core", help="Cores, separated by commas.")
    ] = "lstm,gru,elman",
    assignments: Assignments = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Number of measurements of each.")
    ] = 5,
    scripts: Annotated[bool, typer.Option(help="Also time the two scripts.")] = True,
    memory: Annotated[bool, typer.Option("--memory", help="Also measure peak memory.")] = False,
    phases: Annotated[bool, typer.Option("--phases", help="Show where the time goes.")] = False,
    ceilings_only: Annotated[
        bool, typer.Option("--ceilings", help="Measure only what the machine can do at best.")
    ] = False,
    classes: Classes = False,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="CPU threads; the default is all cores.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Time a training update against two plain scripts, in turn, and against the machine's limits.

    The good script (b) concatenates embedding and encoding, runs PyTorch's layer in float32,
    computes logits of the scored steps only and never waits for the device. The usual script (a)
    also draws samples one by one, computes all logits and reads the loss after every update.

    Examples: pernn bench --shape 128,64,32,32 --core gru --phases; pernn bench --ceilings;
    pernn bench trial.toml --memory --json; pernn bench --classes
    """
    import torch

    from pernn.performance import find_cases
    from pernn.training import keep_freed_memory

    # As in every worker; the scripts that we compare with gain by it too.
    keep_freed_memory()
    torch.set_num_threads(threads or num_cores())
    shapes = shapes or (CLASS_SHAPES if classes else None)
    cases = [] if ceilings_only else find_cases(spec, shapes, cores, overrides(assignments))
    if classes:
        _compare_classes(cases, torch.get_num_threads(), rounds, as_json=as_json)
        return
    names = ("good", "usual") if scripts else ()
    ceilings, found = _measure(cases, device, rounds=rounds, scripts=names, memory=memory)
    if as_json:
        _print_json(ceilings, found, device)
        return
    console = Console()
    _print_ceilings(ceilings, console)
    if found:
        console.print(_summary(found, memory=memory))
    for (name, _), one in found if phases else []:
        console.print(_phases(name, one))


def _measure(
    cases: "list[Case]", device: str, **options: Any
) -> "tuple[Ceilings, list[tuple[Case, Comparison]]]":
    from pernn.performance import compare, measure_ceilings
    from pernn.training import choose_device

    chosen = choose_device(device)
    ceilings = measure_ceilings(chosen)
    progress = Console(stderr=True)
    found = []
    for case in track(cases, description="Measuring", console=progress, transient=True):
        one = compare(case[1], ceilings, chosen, **options)
        ceilings = one.ceilings
        found.append((case, one))
    return ceilings, found


def _print_json(ceilings: "Ceilings", found: "list[tuple[Case, Comparison]]", device: str) -> None:
    from pernn.runs import describe_environment
    from pernn.training import choose_device

    content = {
        "environment": describe_environment(choose_device(device)),
        "ceilings": ceilings.dump(),
        "cases": [{"name": name, **one.dump()} for (name, _), one in found],
    }
    print_json(content)


def _compare_classes(cases: "list[Case]", threads: int, rounds: int, *, as_json: bool) -> None:
    from pernn.performance import compare_classes

    found = compare_classes(
        cases,
        threads=threads,
        rounds=rounds,
        on_class=lambda name: typer.echo(f"Measuring {name}", err=True),
    )
    found["command"] = " ".join(["pernn", *sys.argv[1:]])
    if as_json:
        print_json(found)
        return
    typer.echo(
        f"{found['environment']['processor']}, {counted(threads, 'thread')}, `{found['command']}`, "
        f"medians of {rounds} or more interleaved rounds (least – most):\n\n{found['markdown']}"
    )


def _print_ceilings(ceilings: "Ceilings", console: Console) -> None:
    rates = {"float32": ceilings.fp32, "TF32": ceilings.tf32, "bfloat16": ceilings.bf16}
    shown = ", ".join(f"{name} {rate / 1e9:,.0f} GFLOP/s" for name, rate in rates.items() if rate)
    console.print(
        f"{ceilings.device}, {counted(ceilings.threads, 'thread')}: {shown} "
        f"({BOUNDS[ceilings.bound]}), memory {ceilings.bandwidth / 1e9:.1f} GB/s"
    )


def _summary(found: "list[tuple[Case, Comparison]]", *, memory: bool) -> Table:
    limit = "share of limit" if found[0][1].ceilings.bound == "registers" else "against the library"
    table = Table("Case", "ours, ms", "(b) / ours", "(a) / ours", limit)
    if memory:
        table.add_column("MiB ours / (b) / (a)")
    for (name, _), one in found:
        row = [name, f"{one.seconds['ours'] * 1e3:.1f}"]
        row += [f"{one.ratios[key]:.2f}" if key in one.ratios else "" for key in ("good", "usual")]
        row.append(f"{one.share_of_limit:.0%}")
        if memory:
            row.append(" / ".join(f"{value:,.0f}" for value in one.mebibytes.values()))
        table.add_row(*row)
    return table


def _phases(name: str, one: "Comparison") -> Table:
    table = Table("Phase", "ms", "share", "GFLOP", "MB", "limit, ms", "time / limit", title=name)
    total = sum(phase.seconds for phase in one.phases)
    for phase in one.phases:
        table.add_row(
            phase.name,
            f"{phase.seconds * 1e3:.2f}",
            f"{phase.seconds / total:.0%}",
            f"{phase.operations / 1e9:.2f}",
            f"{phase.num_bytes / 1e6:.1f}",
            f"{phase.limit_seconds * 1e3:.2f}",
            f"{phase.seconds / phase.limit_seconds:.2f}" if phase.limit_seconds else "",
        )
    return table
