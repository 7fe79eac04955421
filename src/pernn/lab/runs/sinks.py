"""Training as other programs show it: TensorBoard and Weights & Biases, below `logs/`.

What `metrics.jsonl` has is shown there, and in Weights & Biases the spec: a run that is resumed is
written anew, so no point stands twice.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, MachineError, install_command, one_line
from pernn.lab.config import flatten
from pernn.lab.store import RunDirectory, refuse_links

from .spec import RunSpec

SINKS_VARIABLE = "PERNN_LOG_TO"
"""Environment variable that names the sinks, with commas between; workers inherit it."""

FOLDER = "logs"
FLUSH_SECONDS = 10


Write = Callable[[int, Mapping[str, float]], None]
"""Takes an update and what was measured there."""
Sink = tuple[Write, Callable[[], None]]
"""What writes, and what ends it."""


def _tensorboard(folder: Path, _spec: RunSpec) -> Sink:
    """Begin event files in a folder."""
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(folder, flush_secs=FLUSH_SECONDS)

    def write(update: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, update)

    return write, writer.close


def _wandb(folder: Path, spec: RunSpec) -> Sink:
    """Begin an offline run of Weights & Biases, for `wandb sync`."""
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    os.environ["WANDB_CACHE_DIR"] = str(folder.parent / "cache")
    import wandb

    folder.mkdir(parents=True)
    quiet = {"silent": True, "console": "off", "disable_git": True, "x_disable_stats": True}
    run = wandb.init(
        mode="offline",
        dir=folder,
        project="pernn",
        id=spec.fingerprint(),
        name=spec.label,
        config=flatten(spec.dump()),
        reinit="create_new",
        settings=wandb.Settings(**quiet),
    )
    return lambda update, values: run.log(dict(values), step=update), run.finish


Begin = Callable[[Path, RunSpec], Sink]
SINKS: Mapping[str, Begin] = {"tensorboard": _tensorboard, "wandb": _wandb}
"""Name, which is that of the package and of the extra too → what begins it."""


def choose_sinks(names: Sequence[str] | None) -> None:
    """Have all runs of this process and its children write to sinks.

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
        if find_spec(name) is None:
            raise MachineError(f"--log-to {name} needs a package: {install_command(name)}")


class Log:
    """The sinks of one run, left out with a warning when failing.

    Args:
        spec: The run.
        directory: Where its metrics are, as far as it goes on from them.
        root: Results directory.
        on_warning: Called with a line that says why a sink was left out.
    """

    def __init__(
        self, spec: RunSpec, directory: RunDirectory, root: Path, on_warning: Callable[[str], None]
    ) -> None:
        self._on_warning, self._sinks = on_warning, dict[str, Sink]()
        names = _chosen()
        label = re.sub(r"[^A-Za-z0-9=_.]+", "-", spec.label)[:100]
        for name in names:
            folder = root / FOLDER / name
            with self._guarding(name):
                refuse_links(folder.parent, folder)
                folder.parent.mkdir(exist_ok=True)
                place = folder / f"{label}-{spec.fingerprint()}"
                shutil.rmtree(place, ignore_errors=True)
                self._sinks[name] = SINKS[name](place, spec)
        for line in directory.read_metrics() if names else ():
            self.write(line)

    def write(self, line: Mapping[str, Any]) -> None:
        """Show a line of `metrics.jsonl`."""
        values = {
            f"{line['kind']}/{key}": float(value)
            for key, value in line.items()
            if key not in ("kind", "update") and isinstance(value, int | float)
        }
        for name, (write, _) in [*self._sinks.items()]:
            with self._guarding(name):
                write(line["update"], values)

    def close(self) -> None:
        """End all sinks."""
        for name, (_, close) in [*self._sinks.items()]:
            with self._guarding(name):
                close()

    @contextmanager
    def _guarding(self, name: str) -> Iterator[None]:
        """Leave a sink out that fails."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 whatever it is, the run's own files are whole
            self._sinks.pop(name, None)
            said = f"{type(error).__name__}: {one_line(str(error))}"
            self._on_warning(f"logging to {name} ended: {said}")


def _chosen() -> list[str]:
    return [*filter(None, dict.fromkeys(os.environ.get(SINKS_VARIABLE, "").split(",")))]
