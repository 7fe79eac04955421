"""Run directories as pernn writes them, with made-up numbers."""

import json
from pathlib import Path

from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory


def spec(seed, core="gru"):
    return RunSpec.load(
        {
            "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 32},
            "core": {"kind": core, "hidden_size": 8},
            "seed": seed,
        }
    )


def begin(root, one):
    run = RunDirectory(root, one.fingerprint())
    run.path.mkdir(parents=True, exist_ok=True)
    (run.path / "spec.json").unlink(missing_ok=True)
    run.write_spec(one.dump())
    run.note("started", update=0)
    return run


def finish(root, one, noise):
    run = begin(root, one)
    run.note("finished", update=one.num_updates, updates=one.num_updates, seconds=0.5)
    metrics = {"loss": noise.expovariate(1), "token_accuracy": noise.random()}
    run.write_result(
        {
            "fingerprint": run.fingerprint,
            "metrics": metrics,
            "num_parameters": noise.randrange(10**6),
            "weights_sha256": f"{noise.getrandbits(256):064x}",
            "tables": {
                "by_update": {"update": [one.num_updates], **{k: [metrics[k]] for k in metrics}}
            },
        }
    )
    return run


def logged(root, one, noise, lines, *, machine="one"):
    """A run with a result, the machine that it began on and a log of metrics."""
    run = finish(root, one, noise)
    run.write_environment({"processor": machine, "threads": 2, "device": "cpu"})
    (run.path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return run


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return Path.touch, (self.place,)
