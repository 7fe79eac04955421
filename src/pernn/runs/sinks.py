"""Training as other programs show it: TensorBoard and Weights & Biases, below `logs/`.

What `metrics.jsonl` has is shown there, no more: a run that is resumed is written anew, so no
point stands twice.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pernn.config import flatten
from pernn.errors import ConfigError, MachineError, install_command, one_line
from pernn.store import RunDirectory, refuse_links

from .spec import RunSpec

SINKS_VARIABLE = "PERNN_LOG_TO"
"""Environment variable that names the sinks, with commas between; workers inherit it."""

FOLDER = "logs"
FLUSH_SECONDS = 10


class _TensorBoard:
    """Event files, one folder per run; written anew when a run is resumed."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        from torch.utils.tensorboard import SummaryWriter

        place = folder / _name(spec)
        shutil.rmtree(place, ignore_errors=True)
        self._writer: Any = SummaryWriter(place, flush_secs=FLUSH_SECONDS)

    def write(self, update: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)

    def close(self) -> None:
        self._writer.close()


class _WandB:
    """An offline run of Weights & Biases, for `wandb sync`; written anew when a run is resumed."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        os.environ |= {"WANDB_ERROR_REPORTING": "false", "WANDB_CACHE_DIR": str(folder / "cache")}
        import wandb

        place = folder / _name(spec)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        quiet = {"silent": True, "console": "off", "disable_git": True, "x_disable_stats": True}
        self._run = wandb.init(
            mode="offline",
            dir=place,
            project="pernn",
            id=spec.fingerprint(),
            name=spec.label,
            config=flatten(spec.dump()),
            reinit="create_new",
            settings=wandb.Settings(**quiet),
        )

    def write(self, update: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=update)

    def close(self) -> None:
        self._run.finish()


Sink = _TensorBoard | _WandB
SINKS: Mapping[str, tuple[str, Callable[[Path, RunSpec], Sink]]] = {
    "tensorboard": ("tensorboard", _TensorBoard),
    "wandb": ("wandb", _WandB),
}
"""Name, which is that of the extra too → the package that it needs, and what writes."""


def choose_sinks(names: Sequence[str] | None) -> None:
    """Have all runs of this process, and of those that it starts, write to sinks.

    Args:
        names: Of `SINKS`; `None` leaves it at what the environment says.

    Raises:
        ConfigError: If a name is unknown.
        MachineError: If its package is missing.
    """
    if names is not None:
        os.environ[SINKS_VARIABLE] = ",".join(names)
    for name in _chosen():
        if name not in SINKS:
            raise ConfigError(
                f"--log-to is invalid: expected one of {', '.join(SINKS)}, got {name!r}"
            )
        if find_spec(SINKS[name][0]) is None:
            raise MachineError(f"--log-to {name} needs a package: {install_command(name)}")


class Log:
    """The sinks of one run; one that fails is left out with a warning, and the run goes on.

    Args:
        spec: The run.
        directory: Where its metrics are, as far as it goes on from them.
        root: Results directory.
        warn: Told in one line why a sink was left out.
    """

    def __init__(
        self, spec: RunSpec, directory: RunDirectory, root: Path, warn: Callable[[str], None]
    ) -> None:
        self._warn, self._sinks = warn, dict[str, Sink]()
        names = _chosen()
        for name in names:
            folder = root / FOLDER / name
            refuse_links(folder.parent, folder)
            folder.parent.mkdir(exist_ok=True)
            self._try(name, partial(self._open, name, folder, spec))
        for line in directory.read_metrics() if names else ():
            self.write(line)

    def write(self, line: Mapping[str, Any]) -> None:
        """Show a line of `metrics.jsonl`."""
        values = {
            f"{line['kind']}/{key}": float(value)
            for key, value in line.items()
            if key not in ("kind", "update") and isinstance(value, int | float)
        }
        for name, sink in [*self._sinks.items()]:
            self._try(name, partial(sink.write, line["update"], values))

    def close(self) -> None:
        """End all sinks."""
        for name, sink in [*self._sinks.items()]:
            self._try(name, sink.close)

    def _open(self, name: str, folder: Path, spec: RunSpec) -> None:
        self._sinks[name] = SINKS[name][1](folder, spec)

    def _try(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 whatever it is, the run's own files are whole
            self._sinks.pop(name, None)
            self._warn(f"logging to {name} ended: {type(error).__name__}: {one_line(str(error))}")


def _chosen() -> list[str]:
    return [name for name in os.environ.get(SINKS_VARIABLE, "").split(",") if name]


def _name(spec: RunSpec) -> str:
    """Return the name of a run's folder: which trial it is, and its fingerprint."""
    return f"{re.sub(r'[^A-Za-z0-9=_.]+', '-', spec.label)[:100]}-{spec.fingerprint()}"
