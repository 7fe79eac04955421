"""Store: run directories, checkpoints, sweeps. Never loads torch."""

from pernn.lazy import exports

from pernn.lab.config import checksum as checksum

from .checkpoints import (
    Checkpoint as Checkpoint,
    CheckpointFolder as CheckpointFolder,
)
from .files import (
    FORMAT as FORMAT,
    check_format as check_format,
    check_writable as check_writable,
    gc_paused as gc_paused,
    make_directory as make_directory,
    naming_damage as naming_damage,
    num_bytes_below as num_bytes_below,
    parse_json as parse_json,
    physical_memory as physical_memory,
    read_json as read_json,
    read_json_if_any as read_json_if_any,
    refuse_links as refuse_links,
    sealed as sealed,
    storing as storing,
    sync as sync,
    to_json as to_json,
    write_atomically as write_atomically,
)
from .lease import NUM_BEATS as NUM_BEATS, LeaseWatch as LeaseWatch, lease_seconds as lease_seconds
from .published import (
    ENDING as ENDING,
    FOLDER as FOLDER,
    IDENTITY as IDENTITY,
    VARIABLE_OF_PLANS as VARIABLE_OF_PLANS,
    RegisteredClaim as RegisteredClaim,
    RegisteredSweep as RegisteredSweep,
    Registration as Registration,
    describe_publication as describe_publication,
    evidence_folder as evidence_folder,
    list_publications as list_publications,
    list_published as list_published,
    load_pyarrow as load_pyarrow,
    plan_folders as plan_folders,
    read_publication as read_publication,
    read_registrations as read_registrations,
    where_published as where_published,
    write_publication as write_publication,
)
from .run_directory import (
    Progress as Progress,
    RunDirectory as RunDirectory,
    RunState as RunState,
    RunStatus as RunStatus,
    is_done as is_done,
    list_runs as list_runs,
    read_progress as read_progress,
    read_status as read_status,
    read_update as read_update,
    seconds_left as seconds_left,
)
from .sweeps import (
    Sweep as Sweep,
    in_words as in_words,
    is_pause_requested as is_pause_requested,
    list_sweeps as list_sweeps,
    load_sweep as load_sweep,
    request_pause as request_pause,
    save_sweep as save_sweep,
    sweep_directory as sweep_directory,
    withdraw_pause as withdraw_pause,
)

__getattr__ = exports(__name__)
