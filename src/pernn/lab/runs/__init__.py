"""Runs: `RunSpec`, `build` and `execute`."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .spec import (
    AnatomyAnalysis as AnatomyAnalysis,
    DescentAnalysis as DescentAnalysis,
    Pretraining as Pretraining,
    RunSpec as RunSpec,
    StabilityAnalysis as StabilityAnalysis,
    tell_apart as tell_apart,
)

if TYPE_CHECKING:
    from .analysis import (
        analyse as analyse,
        analyse_run as analyse_run,
        find_errors as find_errors,
        tabulate as tabulate,
        tabulate_errors as tabulate_errors,
    )
    from .building import (
        Trial as Trial,
        build as build,
        load_model as load_model,
        read_run as read_run,
    )
    from .environment import (
        changed_parts as changed_parts,
        describe_commit as describe_commit,
        describe_environment as describe_environment,
        describe_versions as describe_versions,
        peak_memory as peak_memory,
    )
    from .estimates import estimate as estimate
    from .execution import (
        Outcome as Outcome,
        execute as execute,
        weights_digest as weights_digest,
    )
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

__getattr__ = exports(__name__)
