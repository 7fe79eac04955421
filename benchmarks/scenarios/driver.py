"""A driver in a process of its own: results directory, file of specs, number of workers.

With no workers the trials run in this process. Events other than progress are printed.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from pernn.lab.runners import InlineRunner, LocalRunner, TrialEvent
from pernn.lab.runs import RunSpec


def tell(event: TrialEvent) -> None:
    """Print an event."""
    if event.is_end or event.elsewhere or not event.update:
        print(json.dumps(asdict(event)), flush=True)


def main() -> None:
    """Carry out what the command line says."""
    root, file, jobs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    specs = [RunSpec.load(values) for values in json.loads(file.read_text())]
    runner = LocalRunner(jobs=jobs, device="cpu") if jobs else InlineRunner(device="cpu")
    runner.run(specs, root, tell)


if __name__ == "__main__":
    main()
