"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import (
    Pretraining as Pretraining,
    RunSpec as RunSpec,
    StabilityAnalysis as StabilityAnalysis,
)

if TYPE_CHECKING:
    from .active import weights_digest as weights_digest
    from .analysing import analyse as analyse, tabulate as tabulate
    from .assembly import Trial as Trial, build as build
    from .environment import describe_environment as describe_environment
    from .estimates import (
        Estimate as Estimate,
        estimate as estimate,
        show_bytes as show_bytes,
        show_hours as show_hours,
    )
    from .execution import execute as execute
    from .loading import load_model as load_model
    from .outcome import Outcome as Outcome
    from .parts import changed_parts as changed_parts
    from .pruning import (
        Leftovers as Leftovers,
        delete_leftovers as delete_leftovers,
        find_leftovers as find_leftovers,
        with_stages as with_stages,
    )
    from .sinks import (
        SINKS as SINKS,
        SINKS_VARIABLE as SINKS_VARIABLE,
        choose_sinks as choose_sinks,
    )
    from .versions import describe_commit as describe_commit, describe_versions as describe_versions

__getattr__ = exports(__name__)
