"""The laboratory: specs, tasks, training, sweeps, experiments, reports, command line.

Needs the extra `lab`. Names are imported on first use, so that `pernn list` loads no torch.
"""

from typing import TYPE_CHECKING, Any

from pernn.lazy import exports

if TYPE_CHECKING:
    from .comparisons import compare as compare
    from .lookup import load_curves as load_curves, load_results as load_results
    from .runs import RunSpec as RunSpec, execute as execute, load_model as load_model
    from .sweeps import run as run

_get = exports(__name__)


def __getattr__(name: str) -> Any:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        from pernn.errors import install_command

        advice = install_command("lab")
        if error.name == "fcntl":
            advice = "pernn.lab needs Linux or macOS"
        raise ModuleNotFoundError(f"{error}: {advice}", name=error.name) from error
