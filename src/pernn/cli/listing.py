"""`pernn list`."""

from rich.console import Console
from rich.table import Table

from pernn.cores import CORES
from pernn.encodings import ENCODINGS
from pernn.experiments import CATALOGUE, registered
from pernn.tasks import TASKS

from .options import Json, print_json


def list_experiments(as_json: Json = False) -> None:
    """List the experiments with their questions and sources, and the kinds of parts for specs.

    An experiment of another package is listed by its entry point; its module, which has the
    question, is not imported.

    Example: pernn list --json
    """
    rows = [
        {"name": name, "question": entry.question, "source": entry.source}
        for name, entry in CATALOGUE.items()
    ]
    rows += [
        {"name": name, "question": "", "source": point.value}
        for name, point in registered().items()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("Experiment", "Question", "Source")
    for row in rows:
        table.add_row(row["name"], row["question"], row["source"])
    console = Console()
    console.print(table)
    for title, kinds in (("Tasks", TASKS), ("Cores", CORES), ("Encodings", ENCODINGS)):
        console.print(f"{title}: {', '.join(kinds.names())}")
    console.print("More of each:  pernn show EXPERIMENT,  pernn show TASK --sample 3")
