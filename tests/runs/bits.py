"""What of a run must not depend on the day, nor on where it was cut."""

from pernn.lab.runs import execute
from pernn.lab.runs.spec import AnatomyAnalysis
from pernn.lab.store import RunDirectory


def contents(spec, root):
    """Return the files of a run and of its first stage, the last checkpoint of trainings too."""
    found = {}
    for stage in filter(None, (spec, spec.first_stage())):
        folder = RunDirectory(root, stage.fingerprint()).path
        files = [folder / name for name in ("spec.json", "metrics.jsonl", "result.json")]
        if stage.analysis is None:
            last = folder / "checkpoints" / f"update-{stage.training.iterations:09d}"
            files += sorted(last.iterdir())
        found |= {str(file.relative_to(root)): file.read_bytes() for file in files}
    return found


def cut(spec, root, updates):
    """Run in `whole`, and in `cut` with stops after some updates; make sure that both are equal."""
    heard: list[int] = []
    whole = execute(spec, root / "whole", device="cpu", on_update=lambda n: not heard.append(n))
    assert whole.state == "finished"
    # Levels of an anatomy may share a checkpoint.
    is_anatomy = isinstance(spec.analysis, AnatomyAnalysis)
    assert heard == list(range(1, (len(heard) if is_anatomy else spec.num_updates) + 1))
    for last in updates:
        stop = execute(spec, root / "cut", device="cpu", on_update=lambda n, last=last: n != last)
        assert stop.state == "stopped", last
    assert execute(spec, root / "cut", device="cpu").state == "finished"
    assert contents(spec, root / "cut") == contents(spec, root / "whole")
    return whole
