"""Trained networks as folders that the Hugging Face hub knows: weights, spec and a card.

Names are made on first use, since huggingface_hub is an extra (`hub`).
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pernn.errors import ConfigError, CorruptError, MachineError, install_command
from pernn.runs import RunSpec, build, load_model, read_run
from pernn.store import RunDirectory

CARD = """\
---
{{ card_data }}
---

# {{ title }}

A network of [pernn](https://arxiv.org/abs/2402.00236): {{ parts }}.
{{ updates }} updates, seed {{ seed }}, preset {{ preset }}; run `{{ run }}`.

{% if metrics %}| metric | value |
|---|---|
{% for name, value in metrics.items() %}| {{ name }} | {{ value }} |
{% endfor %}
{% endif %}
```python
import pernn

network = pernn.from_pretrained("{{ repo_id or folder }}")
```

`config.json` has the spec, all that decides the run's numbers.
"""


@cache
def _pretrained() -> type[nn.Module]:
    """Return the class that the hub's mixin saves and loads."""
    try:
        from huggingface_hub import PyTorchModelHubMixin
    except ImportError:
        raise MachineError(f"this needs huggingface_hub: {install_command('hub')}") from None

    class Pretrained(
        nn.Module,
        PyTorchModelHubMixin,
        library_name="pernn",
        paper_url="https://arxiv.org/abs/2402.00236",
        tags=["recurrent-neural-network", "positional-encoding"],
        model_card_template=CARD,
    ):  # type: ignore[misc, call-arg, unused-ignore]
        def __init__(self, spec: dict[str, Any], update: int) -> None:
            super().__init__()
            self.network = build(_read(spec), torch.device("cpu")).model
            self.update = update

        @classmethod
        def _load_as_pickle(cls, *_: Any) -> "Pretrained":  # type: ignore[override]
            raise ConfigError("no model.safetensors there: expected a folder of save_pretrained")

    return Pretrained


def save_pretrained(run: str | Path, folder: str | Path, *, update: int | None = None) -> Path:
    """Write a run's network as a folder that can be uploaded to the hub as it is.

    Args:
        run: The run's directory, `results/runs/<fingerprint>`.
        folder: Where `model.safetensors`, `config.json` and `README.md` go.
        update: Which checkpoint; the newest if absent.

    Returns:
        The folder.

    Raises:
        ConfigError: If it is no run's directory, has no such checkpoint, or has two stages, of
            which the first shapes the network.
        CorruptError: If the checkpoint is damaged.
        MachineError: If huggingface_hub is missing.
    """
    kind, target = _pretrained(), Path(folder)
    network = load_model(run, update=update)
    spec, root = read_run(Path(run))
    if spec.pretraining is not None:
        raise ConfigError(f"{run}: expected a run of one stage, got one with a pretraining")
    directory = RunDirectory(root, spec.fingerprint())
    saved = max(directory.checkpoints.updates(), default=0) if update is None else update
    wrapped: Any = kind(spec=spec.dump(), update=saved)
    wrapped.network.load_state_dict(network.state_dict())
    result = directory.read_result() if saved == spec.num_updates else None
    card = {
        "title": spec.label,
        "parts": f"core {spec.core.kind}, encoding {spec.encoding.kind}, task {spec.task.kind}",
        "updates": f"{saved:,}",
        "seed": spec.seed,
        "preset": spec.preset,
        "run": spec.fingerprint(),
        "metrics": dict((result or {}).get("metrics", {})),
        "folder": target.name,
    }
    wrapped.save_pretrained(target, model_card_kwargs=card)
    return target


def from_pretrained(place: str | Path, **options: Any) -> nn.Module:
    """Return the network of a folder that `save_pretrained` wrote, or of a repository of the hub.

    Nothing is unpickled, and parts of one's own (`package.module:Config`) are not imported.

    Args:
        place: A folder, or `owner/name` on the hub.
        options: Of the hub's mixin: `revision`, `cache_dir`, `token`, `local_files_only` …

    Raises:
        ConfigError: If there is no such network, or its spec is invalid or names own parts.
        CorruptError: If the weights do not fit the spec, or are damaged.
        MachineError: If huggingface_hub is missing.
    """
    from safetensors import SafetensorError

    kind: Any = _pretrained()
    try:
        # The mixin prints where it loads from.
        with redirect_stdout(io.StringIO()):
            loaded: Any = kind.from_pretrained(place, strict=True, **options)
    except (SafetensorError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CorruptError(f"{place}: the weights do not fit: {reason}") from None
    except (OSError, TypeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"{place} is no folder of save_pretrained: {reason}") from None
    network: nn.Module = loaded.network
    return network


def _read(values: Mapping[str, Any]) -> RunSpec:
    """Read a spec that may be a stranger's."""
    for kind in _kinds(values):
        if ":" in kind:
            raise ConfigError(
                f"kind {kind[:80]!r} is no part of pernn, and the folder does not hold its code: "
                "build the network yourself and load model.safetensors into it"
            )
    return RunSpec.load(values)


def _kinds(values: Any) -> Iterator[str]:
    if isinstance(values, Mapping):
        yield str(values.get("kind", ""))
    if isinstance(values, Mapping | list):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from _kinds(value)
