"""A trained network out of a run's directory."""

from pathlib import Path

import torch

from pernn.errors import ConfigError
from pernn.models import PositionEncodedRNN, VectorRNN
from pernn.store import RunDirectory

from .spec import RunSpec
from .stages import build_stage, restore_weights


def load_model(
    run: str | Path, *, update: int | None = None, device: str | torch.device = "cpu"
) -> PositionEncodedRNN | VectorRNN:
    """Return the network of a run with the weights of a checkpoint.

    Args:
        run: The run's directory, `results/runs/<fingerprint>`; of an analysis the network is that
            of the training run that it analyses, which lies beside it, as a pretraining does.
        update: Which checkpoint; the newest if absent.
        device: Where the network lives.

    Raises:
        ConfigError: If it is no run's directory, or has no such checkpoint.
        CorruptError: If the checkpoint is damaged.
    """
    path = Path(run)
    if not (path / "spec.json").is_file():
        raise ConfigError(
            f"{path} is not a run directory: expected one of those below runs/ in a results "
            "directory, with a spec.json"
        )
    spec, root = RunSpec.read(path / "spec.json"), path.resolve().parent.parent
    if spec.analysis is not None:
        spec = spec.first_stage() or spec
    folder = RunDirectory(root, spec.fingerprint()).checkpoints
    saved = folder.updates()
    if not saved or (update is not None and update not in saved):
        raise ConfigError(
            f"{folder.path}: no checkpoint of update {update}: expected one of {list(saved)}"
        )
    arrays = folder.load(max(saved) if update is None else update).arrays
    model = build_stage(spec, root, torch.device(device)).model
    restore_weights(model, arrays, folder.path)
    return model
