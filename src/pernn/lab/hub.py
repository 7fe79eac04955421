"""Trained networks as folders for the Hugging Face hub.

Folders are written and read here, so that nothing in one is trusted; huggingface_hub (extra `hub`)
only fetches those of the hub.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from pernn.errors import ConfigError, CorruptError, MachineError, StoreError, install_command
from pernn.lab.config import Config, own_parts_off
from pernn.lab.runs import RunSpec, build, load_model, read_run
from pernn.lab.store import (
    RunDirectory,
    make_directory,
    physical_memory,
    read_json,
    read_whole,
    storing,
    to_json,
    write_atomically,
)
from pernn.models import PositionEncodedRNN

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
PREFIX = "network."
"""Begins the names of the weights."""
TEXT = """\
---
library_name: pernn
tags: [positional-encoding, recurrent-neural-network]
---

# {title}

A network of [pernn](https://arxiv.org/abs/2402.00236): {about}.

{metrics}```python
import pernn.lab

network = pernn.lab.from_pretrained("{folder}")
```

`config.json` has all that it is built from, `model.safetensors` its weights.
"""


class NetworkConfig(Config):
    """Arguments of a `PositionEncodedRNN` whose parts are given by kind."""

    vocab_size: int
    core: str
    encoding: str
    embedding_size: int
    hidden_size: int
    num_layers: int
    num_positions: int
    num_extra_rows: int


def save_pretrained(
    source: str | Path | nn.Module, folder: str | Path, *, update: int | None = None
) -> Path:
    """Write a network as a folder to upload to the hub.

    Args:
        source: A `PositionEncodedRNN` whose core and encoding were given by kind, or a run's
            directory, `results/runs/<fingerprint>`.
        folder: Where `model.safetensors`, `config.json` and `README.md` go; a card that is there
            stays.
        update: Which checkpoint of the run; the newest if absent.

    Returns:
        The folder.

    Raises:
        ConfigError: If it is neither, the run has no such checkpoint, or has two stages, of which
            the first shapes the network.
        CorruptError: If the checkpoint is damaged.
        StoreError: If the folder cannot be written.
    """
    target = Path(folder)
    if isinstance(source, nn.Module):
        network, config, card = source, *_describe_network(source)
    else:
        network, config, card = _read_run(Path(source), update)
    weights = {PREFIX + name: one.detach().clone() for name, one in network.state_dict().items()}
    with storing(target):
        make_directory(target)
    write_atomically(target / WEIGHTS, save(weights))
    write_atomically(target / CONFIG, to_json(config))
    if not (target / CARD).exists():
        card = {"metrics": "", "folder": target.name, **card}
        write_atomically(target / CARD, TEXT.format(**card).encode())
    return target


def _describe_network(network: nn.Module) -> tuple[dict[str, Any], dict[str, str]]:
    arguments = getattr(network, "arguments", None)
    if type(network) is not PositionEncodedRNN or arguments is None:
        raise ConfigError(
            "expected a run's directory, or a PositionEncodedRNN whose core and encoding were "
            f"given by kind (core='lstm', encoding='none'), got a {type(network).__name__} that "
            "was not: save its state_dict, and build it yourself"
        )
    about = ", ".join(f"{name} {value}" for name, value in arguments.items())
    return {"network": arguments}, {"title": "Position-encoded network", "about": about}


def _read_run(run: Path, update: int | None) -> tuple[nn.Module, dict[str, Any], dict[str, str]]:
    network = load_model(run, update=update)
    spec, root = read_run(run)
    if spec.pretraining is not None:
        raise ConfigError(f"{run}: expected a run of one stage, got one with a pretraining")
    directory = RunDirectory(root, spec.fingerprint())
    saved = max(directory.checkpoints.updates(), default=0) if update is None else update
    result = directory.read_result() if saved == spec.num_updates else None
    metrics = "".join(f"| {k} | {v} |\n" for k, v in ((result or {}).get("metrics", {})).items())
    card = {
        "title": spec.label,
        "about": f"core {spec.core.kind}, encoding {spec.encoding.kind}, task {spec.task.kind}; "
        f"{saved:,} updates, seed {spec.seed}, preset {spec.preset}; run `{spec.fingerprint()}`",
        "metrics": f"| metric | value |\n|---|---|\n{metrics}\n" if metrics else "",
    }
    return network, {"spec": spec.dump(), "update": saved}, card


def from_pretrained(place: str | Path, **options: Any) -> nn.Module:
    """Return the network of a `save_pretrained` folder or hub repository.

    Nothing is unpickled, and parts of one's own (`package.module:Config`) are not imported; those
    that are imported already count.

    Args:
        place: A folder, or `owner/name` on the hub.
        options: Of `huggingface_hub.hf_hub_download`: `revision`, `cache_dir`, `token`,
            `local_files_only` …

    Raises:
        ConfigError: If there is no such network, or its config is invalid or names own parts.
        CorruptError: If a file is damaged, or the weights do not fit.
        MachineError: If huggingface_hub is missing for what is no folder.
    """
    folder = Path(place)
    files = [folder / CONFIG, folder / WEIGHTS]
    if not folder.is_dir():
        files = [_fetch(str(place), path.name, options) for path in files]
    try:
        network = _build(read_json(files[0]))
        weights = load(read_whole(files[1], physical_memory()))
    except SafetensorError as error:
        raise CorruptError(f"{place}: the weights do not fit: {error}") from None
    except CorruptError:
        raise
    except StoreError as error:
        raise ConfigError(f"{place} is no folder of save_pretrained: {error}") from None
    except MachineError as error:
        raise ConfigError(f"{place}: {error}") from None
    _put(network, weights, place)
    return network.eval()


def _fetch(repository: str, name: str, options: Mapping[str, Any]) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MachineError(f"this needs huggingface_hub: {install_command('hub')}") from None
    try:
        return Path(hf_hub_download(repository, name, **options))
    except (OSError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(f"{repository} is no folder of save_pretrained: {reason}") from None


@own_parts_off()
def _build(config: Mapping[str, Any]) -> nn.Module:
    """Make a network, with whatever weights, from a config that may be a stranger's."""
    if isinstance(config.get("network"), dict):
        return PositionEncodedRNN(**NetworkConfig.load(config["network"]).dump())
    if not isinstance(config.get("spec"), dict):
        raise ConfigError(f"{CONFIG} is invalid: expected a network or a spec")
    return build(RunSpec.load(config["spec"]), torch.device("cpu")).model


def _put(network: nn.Module, weights: Mapping[str, Tensor], place: str | Path) -> None:
    """Put weights into a network, which takes on their type."""
    kinds = {str(one.dtype).removeprefix("torch.") for one in weights.values()}
    if len(kinds) != 1 or not next(iter(weights.values())).is_floating_point():
        said = ", ".join(sorted(kinds)) or "none"
        raise CorruptError(f"{place}: expected weights of one floating type, got {said}")
    if odd := [name for name, one in weights.items() if not one.isfinite().all()]:
        raise CorruptError(f"{place}: {odd[0]} contains NaN or infinity")
    try:
        found = {name.removeprefix(PREFIX): one for name, one in weights.items()}
        network.to(next(iter(weights.values())).dtype).load_state_dict(found)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CorruptError(f"{place}: the weights do not fit: {reason}") from None
